import FerryConformance
import FerryProtocol
import Foundation

/// Waits until no work is left.
struct Drain: Sendable {
  let world: ProcessWorld

  /// Returns the time until every device had sent all operations and applied all of the server's.
  ///
  /// - Throws: ``NotDrained`` after `limit`, also if the last work ended between two looks of which
  ///   the second came too late. With a limit of 0 nothing is in time.
  func wait(within limit: Duration) async throws -> Duration {
    let start = ContinuousClock.now
    var lastCount = world.devices.count + 1
    while true {
      let laggards = try await blocking { [world] in try Self.laggards(of: world) }
      let elapsed = ContinuousClock.now - start
      if laggards.isEmpty, elapsed <= limit { return elapsed }
      if laggards.count < lastCount {
        world.chronicle.append("round", "waits for \(laggards.joined(separator: "; "))")
        lastCount = laggards.count
      }
      guard elapsed < limit else { throw NotDrained(laggards: laggards) }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  /// Returns the unfinished devices, with reasons. Blocks.
  private static func laggards(of world: ProcessWorld) throws -> [String] {
    let head = try world.head()
    let mirror = try world.company?.laggard(head: head)
    return try (mirror.map { [$0] } ?? [])
      + world.devices.compactMap { device in
        let progress = try device.file.progress()
        if progress == DeviceFile.Progress(pending: 0, applied: head) { return nil }
        return
          "\(device.name) has \(progress.pending) pending and applied \(progress.applied) of \(head)"
      }
  }
}

/// The queues were not empty in time.
struct NotDrained: Error {
  /// The unfinished devices, with reasons; empty if the last was done too late.
  var laggards: [String]
}
