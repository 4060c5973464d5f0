import Foundation
import Synchronization

/// A shell that stops a cluster and removes its directory when this process ends, for any reason.
///
/// It reads from a pipe, with the other end held by this process only; a kill -9 closes it too. It
/// shares standard error, so a reader at the end of this stream knows that all is cleaned up.
final class ClusterWatchdog: Sendable {
  private static let live = Mutex([pid_t: Int32]())
  private static let cleanUpAtExit: Void = {
    atexit { ClusterWatchdog.releaseAll() }
  }()

  private let processID: pid_t

  /// `stop` is a command line; a failure of it does not matter.
  init(directory: String, stop: [String]) throws {
    _ = Self.cleanUpAtExit
    let pipe = try PipeEnds.open()
    defer { close(pipe.reader) }
    let script = """
      trap '' INT TERM HUP
      directory=$1
      shift
      read -r _
      "$@"
      for attempt in 1 2 3 4 5 6 7 8 9 10; do
        rm -rf "$directory" && exit 0
        sleep 0.2
      done
      """
    do {
      processID = try ProcessSpawner.spawn(
        SpawnRequest(
          executable: "/bin/sh", arguments: ["-c", script, "watchdog", directory] + stop,
          directory: "/", input: pipe.reader, error: STDERR_FILENO, ownSession: true,
          diesWithParent: false))
    } catch {
      close(pipe.writer)
      throw error
    }
    Self.live.withLock { [processID] in $0[processID] = pipe.writer }
  }

  deinit { release() }

  /// Stops and removes the cluster, and waits until it is removed.
  func release() {
    guard let writer = Self.live.withLock({ $0.removeValue(forKey: processID) }) else { return }
    close(writer)
    ProcessSpawner.waitForEnd(of: processID)
  }

  private static func releaseAll() {
    let watchdogs = live.withLock { live in
      defer { live = [:] }
      return live
    }
    for writer in watchdogs.values { close(writer) }
    for processID in watchdogs.keys { ProcessSpawner.waitForEnd(of: processID) }
  }
}
