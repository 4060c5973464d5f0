import FerryNetworking
import FerryPlatform
import FerrySQLite
import Synchronization

/// Threads, network connections and memory of many replicas in one process, such as the mirrors of a
/// group. A replica of its own has three threads and a quarter of a MiB for the file.
package struct ReplicaSharing: Sendable {
  private let threads: SharedThreads
  private let warm: WarmFiles
  private let transport: any Transport

  /// - Parameters:
  ///   - threads: the number of threads for all files.
  ///   - warmMax: the number of files that keep pages, prepared statements and the parsed schema in
  ///     memory; see ``WarmFiles``.
  package init(threads: Int, warmMax: Int) {
    self.threads = SharedThreads(name: "ferry-replicas", count: threads)
    warm = WarmFiles(max: warmMax)
    transport = SystemTransport()
  }

  /// Opens the replica of a space.
  package func open(
    _ path: String, of server: ServerAddress, in surroundings: ReplicaSurroundings
  ) async throws -> Replica {
    var shared = surroundings
    shared.makeExecutor = { [threads] _ in threads.makeExecutor() }
    shared.warm = warm
    return try await Replica.open(path, server: server, transport: transport, in: shared)
  }
}

/// The last used ones of many files. Only these keep pages, prepared statements and the parsed
/// schema in memory. A file without them reads them again at the next use, within milliseconds.
package final class WarmFiles: Sendable {
  private struct Use {
    let file: ObjectIdentifier
    let release: @Sendable () -> Void
  }

  private let max: Int
  /// The last used one comes last.
  private let uses = Mutex<[Use]>([])

  package init(max: Int) { self.max = max }

  /// Records a use of a file.
  ///
  /// - Parameter release: releases the memory later, on the file's thread. Does not wait.
  func record(_ file: AnyObject, _ release: @escaping @Sendable () -> Void) {
    let id = ObjectIdentifier(file)
    let coldest = uses.withLock { uses -> Use? in
      if uses.last?.file == id { return nil }
      uses.removeAll { $0.file == id }
      uses.append(Use(file: id, release: release))
      return uses.count > max ? uses.removeFirst() : nil
    }
    coldest?.release()
  }

  /// Forgets a closed file.
  func forget(_ file: AnyObject) {
    let id = ObjectIdentifier(file)
    uses.withLock { $0.removeAll { $0.file == id } }
  }
}
