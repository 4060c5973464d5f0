import FerryProtocol
import FerrySQLite

/// The present and former device identifiers of this replica. A fork, a rolled-back server and a
/// rejection each require a new one, but writes under a former one remain the replica's own.
struct OwnNames: Sendable, Equatable {
  struct Former: Sendable, Equatable {
    let device: DeviceID
    /// A copy made the later writes under this identifier.
    let until: HybridTimestamp
  }

  let device: DeviceID
  /// The former identifiers, oldest first.
  let former: [Former]

  /// Returns true if this replica made the write.
  func wrote(_ stamp: Stamp) -> Bool {
    stamp.device == device
      || former.contains { $0.device == stamp.device && stamp.time <= $0.until }
  }
}

extension OwnNames {
  /// Reads the former identifiers of a device from a ledger.
  static func read(_ device: DeviceID, from connection: SQLiteConnection) throws -> OwnNames {
    let former = try connection.rows(
      "SELECT device, until FROM ferry_former_names ORDER BY seq"
    ) { row in
      Former(
        device: DeviceID(row.uniqueID(0) ?? UniqueID(high: 0, low: 0)),
        until: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(1))))
    }
    return OwnNames(device: device, former: former)
  }

  /// Stores the present identifier as a former one, before the replica uses another.
  static func storePresent(on connection: SQLiteConnection) throws {
    let newest =
      try connection.first("SELECT id FROM ferry_operations ORDER BY seq DESC LIMIT 1") {
        $0.uniqueID(0)?.timestamp
      } ?? nil
    try connection.run(
      """
      INSERT INTO ferry_former_names(device, until) SELECT device, max(clock, ?) FROM ferry_replica
      """, newest?.rawValue ?? 0)
  }
}
