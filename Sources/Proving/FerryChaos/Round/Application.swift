import FerryConformance
import FerryProtocol
import FerrySQLite

/// The application on the devices: the workload of the simulator, put on files.
enum Application {
  /// The statements for a new device's tables.
  static var schema: String {
    (Workload.schema + [DeviceFile.journalSchema]).joined(separator: ";\n")
  }

  /// Returns the actions of all devices.
  static func actions(_ plan: RoundPlan) -> [PlannedAction] {
    Workload.plan(
      seed: plan.seed, devices: plan.devices, operations: plan.transactions,
      duration: Int64(plan.milliseconds))
  }

  /// Returns the times of a device's application for each step of the schema, milliseconds since
  /// the start.
  static func upgradeTimes(_ plan: RoundPlan, device: Int) -> [Int64] {
    var random = SeededRandom(plan.seed, "upgrades of device \(device)")
    return Workload.upgrades.map { _ in Int64(random.below(plan.milliseconds)) }.sorted()
  }

  /// Returns one transaction for an action; `nil` if there are no rows to act on. Blocks.
  static func script(
    for action: PlannedAction, on file: DeviceFile, device: String
  ) throws -> String? {
    let statements = try file.read { connection in
      try Workload.statements(
        for: action, deviceName: device, level: try DeviceFile.level(connection)
      ) { select in
        try connection.prepare(select).rows { row in
          (0..<row.columnCount).map { row.isNull($0) ? .null : .text(row.text($0)) }
        }
      }
    }
    guard !statements.isEmpty else { return nil }
    return DeviceFile.journalled(statements.joined(separator: ";\n"), action: action.ordinal)
  }

  /// Returns the transaction for a step of the schema, counted from 0.
  static func upgrade(_ step: Int) -> String {
    "\(Workload.upgrades[step]); INSERT INTO chaos_upgrades VALUES (\(step))"
  }
}
