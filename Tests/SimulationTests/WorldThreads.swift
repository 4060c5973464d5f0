import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

/// Runs worlds each on one thread from beginning to end, as many at once as there are cores. A
/// world belongs to the thread it was made on.
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

  /// Runs one world to the end.
  ///
  /// - Parameter planting: gets the database of the world's mirrors with each virtual second.
  static func world(
    _ seed: UInt64, _ options: WorldOptions, keepsEvents: Bool = false,
    planting: (@Sendable (_ database: String) throws -> Void)? = nil
  ) async throws -> WorldResult {
    try await run {
      let mirrors = options.mirrors > 0 ? try PostgresCluster.shared().createDatabase() : nil
      let world = try World(
        seed: seed, options: options, keepsEvents: keepsEvents, mirrors: mirrors)
      if let mirrors, let planting {
        world.onSecond = { _ in #expect(throws: Never.self) { try planting(mirrors) } }
      }
      return world.run()
    }
  }

  /// Expects that a world passes all oracles, and has events of a kind.
  static func expectSound(
    _ seed: UInt64, _ options: WorldOptions, with kind: TraceEvent.Kind
  ) async throws {
    let result = try await world(seed, options)
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[kind, default: 0] > 0)
  }

  /// Expects that a world is the same twice.
  static func expectTwice(_ seed: UInt64, _ options: WorldOptions) async throws {
    let first = try await world(seed, options)
    let second = try await world(seed, options)
    #expect(first.traceHash == second.traceHash)
    #expect(first.steps == second.steps && first.virtualTime == second.virtualTime)
  }

  /// Returns the words in the events of a kind, of six worlds.
  static func words(
    of kind: TraceEvent.Kind, _ options: WorldOptions
  ) async throws -> Set<String> {
    var seen: Set<String> = []
    for seed in 1...6 as ClosedRange<UInt64> {
      let result = try await world(seed, options, keepsEvents: true)
      for event in result.events where event.kind == kind {
        seen.formUnion(
          event.detail.split(whereSeparator: { " :".contains($0) }).map(String.init))
      }
    }
    return seen
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
