import FerryConformance
import Foundation

/// The user of one device: performs the planned writes, with some reads in between.
struct DeviceUser: Sendable {
  let device: CommandLineDevice
  let actions: [PlannedAction]
  /// The times of the application's schema steps, milliseconds since the start.
  let upgradeTimes: [Int64]
  let collector: Collector
  let chronicle: Chronicle

  /// Performs the actions in order, each at the planned time or as soon as the one before is done.
  func run(from start: ContinuousClock.Instant, done: @Sendable () -> Void) async throws {
    for action in actions {
      try await Task.sleep(until: start + .milliseconds(action.at))
      try await upgrade(at: action.at)
      try await perform(action)
      if action.seed.isMultiple(of: 2) { try await read() }
      done()
    }
    try await upgrade(at: .max)
  }

  /// Runs the due steps of the schema, each until it succeeds.
  private func upgrade(at time: Int64) async throws {
    let due = upgradeTimes.count { $0 <= time }
    let file = device.file
    while true {
      let level = try await blocking { try file.read { try DeviceFile.level($0) } }
      guard level < due else { return }
      let ending = try await device.write(Application.upgrade(level))
      chronicle.append(device.name, "step \(level + 1) of the schema: \(ending)")
      if case .refused = ending { try await Task.sleep(for: .milliseconds(100)) }
    }
  }

  /// Reads the replica as it is now.
  func read() async throws {
    let evidence = try await blocking { [file = device.file] in try file.evidence() }
    await collector.see(.read(device: device.name, evidence))
  }

  private func perform(_ action: PlannedAction) async throws {
    if let batch = Workload.batch(for: action) { return try await perform(action, batch) }
    let file = device.file
    let script = try await blocking { [name = device.name] in
      try Application.script(for: action, on: file, device: name)
    }
    guard let script else { return await collector.count { $0.skipped += 1 } }
    let ending = try await device.write(script)
    // The file is the evidence: a killed process may not have reported a commit.
    let recorded = try await blocking { try file.recorded(by: action.ordinal) }
    await conclude(action, ending, recorded)
  }

  private func perform(_ action: PlannedAction, _ batch: Workload.BatchUpdate) async throws {
    let file = device.file
    let before = try await blocking { try file.batches(after: 0).count }
    let ending = try await device.write(batch)
    let recorded = try await blocking { try file.batches(after: before) }
    await conclude(action, ending, recorded.isEmpty ? nil : recorded)
  }

  /// Compares the process's report with the file.
  private func conclude(
    _ action: PlannedAction, _ ending: CommandLineDevice.WriteEnding, _ recorded: [LocalOperation]?
  ) async {
    record(action, ending, operations: recorded?.count)
    if let recorded { await collector.see(.committed(device: device.name, recorded)) }
    switch (ending, recorded) {
    case (.committed, nil):
      await collector.add(
        Violation(
          oracle: "durable-writes",
          "\(device.name): action \(action.ordinal) was reported as committed, but is not in the "
            + "file"
        ))
    case (.refused(let reason), .some):
      await collector.add(
        Violation(
          oracle: "durable-writes",
          "\(device.name): action \(action.ordinal) was refused (\(reason)), but is in the file"))
    case (.refused, nil): await collector.count { $0.refused += 1 }
    case (.killed, nil): await collector.count { $0.killed += 1 }
    case (.committed, .some), (.killed, .some): break
    }
  }

  private func record(
    _ action: PlannedAction, _ ending: CommandLineDevice.WriteEnding, operations: Int?
  ) {
    let found = operations.map { "\($0) operations" } ?? "not committed"
    var text = "action \(action.ordinal) \(action.action.rawValue): \(found)"
    switch ending {
    case .committed: break
    case .killed: text += ", killed"
    case .refused(let reason): text += ", refused: \(reason)"
    }
    chronicle.append(device.name, text)
  }
}
