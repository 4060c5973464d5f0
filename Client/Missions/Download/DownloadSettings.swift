import Executors
import Foundation
import Networking

/// How a downloader goes about it.
public struct DownloadSettings: Sendable {
  /// Requests at a time for one file.
  public var connections = 4
  /// Bytes of one request's range, at most.
  public var rangeBytes: Int64 = 32 << 20
  /// A file up to this size, in bytes, is asked for in one request without a range.
  public var wholeBytes: Int64 = 8 << 20
  /// When to try again what failed in a way that may pass. Failures count as long as nothing new
  /// came; any byte that stays begins the count anew.
  public var retry = RetryPolicy()
  /// Whether a file with hashes of chunks is checked as a whole at the end, too. Without it, the
  /// chunks' hashes alone vouch for it.
  public var checksWhole = true
  /// Whether a file is on the disk, and not only with the operating system, when it is done. Who
  /// fetches many files and makes them durable together leaves it out.
  public var endsDurable = true
  /// A file smaller than this, in bytes, is fetched anew when its download was ended early.
  package var marksFrom: Int64 = 1 << 20

  /// The defaults.
  public init() {}
}

/// Opens the transfer of a source with these header fields in its request.
///
/// It answers with any status; redirects are its own, and so is the limit for silence. Naming
/// `Accept-Encoding` means that the body is wanted as it is on the wire.
public typealias DownloadOpening =
  @Sendable (DownloadSource, TransportHeaders) async throws(TransportError) -> TransportStream

/// What a downloader takes from the machine that it runs on; a simulation gives it its own.
package struct DownloadSurroundings: Sendable {
  /// A clock that never goes back.
  package var steadyClock: @Sendable () -> Duration
  /// Seconds since 1970, for the dates in answers. May jump.
  package var wallClock: @Sendable () -> Int64
  /// Where the jitter of retries comes from.
  package var random: @Sendable () -> UInt64
  /// Waits; throws when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// What tells one run of the operating system from the next; nil where nothing does.
  package var bootID: @Sendable () -> String?
  /// A place for blocking work, by the name that debuggers show.
  package var makeExecutor: @Sendable (String) -> any WorkExecutor
  /// Calls on the file that is being fetched.
  package var files: any FileCalls

  package init(
    steadyClock: @escaping @Sendable () -> Duration, wallClock: @escaping @Sendable () -> Int64,
    random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    bootID: @escaping @Sendable () -> String?,
    makeExecutor: @escaping @Sendable (String) -> any WorkExecutor,
    files: any FileCalls = SystemFileCalls()
  ) {
    self.steadyClock = steadyClock
    self.wallClock = wallClock
    self.random = random
    self.sleep = sleep
    self.bootID = bootID
    self.makeExecutor = makeExecutor
    self.files = files
  }

  /// This machine.
  package static var system: DownloadSurroundings {
    DownloadSurroundings(
      steadyClock: { seconds(CLOCK_MONOTONIC) },
      wallClock: { seconds(CLOCK_REALTIME).components.seconds },
      random: { UInt64.random(in: .min ... .max) }, sleep: { try await Task.sleep(for: $0) },
      bootID: {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines)
      },
      makeExecutor: { ThreadExecutor(name: $0) })
  }

  private static func seconds(_ clock: clockid_t) -> Duration {
    var now = timespec()
    clock_gettime(clock, &now)
    return .seconds(Int64(now.tv_sec)) + .nanoseconds(Int64(now.tv_nsec))
  }
}
