import FerryProtocol
import SQLite

/// What this replica is called, and was called before: a fork, a server that was set back and a
/// refusal each give it a new name, but what it wrote under a former one is still its own.
struct OwnNames: Sendable, Equatable {
  struct Former: Sendable, Equatable {
    let device: DeviceID
    /// What was written later under this name was written by a copy.
    let until: HybridTimestamp
  }

  let device: DeviceID
  /// Oldest first.
  let former: [Former]

  /// Whether this replica wrote it.
  func wrote(_ stamp: Stamp) -> Bool {
    stamp.device == device
      || former.contains { $0.device == stamp.device && stamp.time <= $0.until }
  }
}

extension ReplicaFile {
  func ownNames() throws -> OwnNames {
    let find = try connection.statement(
      "SELECT device, until FROM ferry_former_names ORDER BY seq")
    let former = try find.map { row in
      OwnNames.Former(
        device: DeviceID(row.uniqueID(0) ?? UniqueID(high: 0, low: 0)),
        until: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(1))))
    }
    return OwnNames(device: try identity().device, former: former)
  }

  /// Remembers the name that the replica has now, for after it has another one.
  func keepName() throws {
    let newest =
      try connection.statement("SELECT id FROM ferry_pending ORDER BY seq DESC LIMIT 1")
      .first { $0.uniqueID(0)?.timestamp } ?? nil
    let keep = try connection.statement(
      """
      INSERT INTO ferry_former_names(device, until) SELECT device, max(clock, ?) FROM ferry_replica
      """)
    keep.bind(1, Int64(bitPattern: newest?.rawValue ?? 0))
    try keep.run()
  }
}
