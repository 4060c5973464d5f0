import FerrySimulation
import Foundation

/// Runs worlds each on one thread from beginning to end, as many at once as there are cores. A
/// world belongs to the thread that made it.
enum WorldThreads {
  private static let queue: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = ProcessInfo.processInfo.activeProcessorCount
    return queue
  }()

  /// Runs `body`, which never waits for another thread's tasks, away from the tests' own threads.
  static func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.addOperation { continuation.resume(with: Result(catching: body)) }
    }
  }

  /// Runs one world to its end.
  static func world(
    _ seed: UInt64, _ options: WorldOptions, keepsEvents: Bool = false
  ) async throws -> WorldResult {
    try await run { try World(seed: seed, options: options, keepsEvents: keepsEvents).run() }
  }
}

extension WorldOptions {
  /// Returns a small world of this profile.
  static func small(
    _ profile: Profile, devices: Int = 3, operations: Int = 40, seconds: Int = 30
  ) -> WorldOptions {
    var options = WorldOptions(profile)
    options.devices = devices
    options.operations = operations
    options.seconds = seconds
    return options
  }
}
