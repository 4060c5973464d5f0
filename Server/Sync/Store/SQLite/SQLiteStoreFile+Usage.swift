import FerryProtocol
import FerrySQLite

/// The users of devices, and the use of a space by principals.
extension SQLiteStoreFile {
  func loadUsage(
    of principals: [Principal], in space: Int64, into context: inout IngestContext
  ) throws {
    for principal in Set(principals + [.anonymous]) {
      context.usage[principal] = try usage(of: principal.id, in: space)
    }
    context.total = try usage(of: Usage.total, in: space) ?? Usage()
  }

  private func usage(of principal: String, in space: Int64) throws -> Usage? {
    try connection.first(
      """
      SELECT principal, \(Usage.columns) FROM usage WHERE space = ? AND principal = ?
      """, space, principal
    ) { Usage($0) }
  }

  /// Saves new owners. A name does not go to another owner.
  func saveOwners(_ owners: [DeviceID: Principal], in space: Int64, now: Int64) throws {
    if owners.isEmpty { return }
    let upsert = try connection.statement(
      """
      INSERT INTO devices(space, device, principal, seen_at) VALUES (?, ?, ?, ?)
      ON CONFLICT(space, device) DO UPDATE SET principal = excluded.principal, name = NULL
      """)
    for (device, principal) in owners.sorted(by: { $0.key < $1.key }) {
      try upsert.run(space, device.value, principal.id, now)
    }
  }

  func saveUsage(_ effects: IngestEffects, in space: Int64) throws {
    for (principal, usage) in effects.usage.sorted(by: { $0.key.id < $1.key.id }) {
      try save(usage, of: principal.id, in: space)
    }
    if let total = effects.total { try save(total, of: Usage.total, in: space) }
  }

  private func save(_ usage: Usage, of principal: String, in space: Int64) throws {
    try connection.run(
      """
      INSERT INTO usage(space, principal, \(Usage.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(space, principal) DO UPDATE SET bytes = excluded.bytes,
        records = excluded.records, devices = excluded.devices, packets = excluded.packets,
        packet_bytes = excluded.packet_bytes, day = excluded.day, written = excluded.written
      """, space, principal, SQLiteList(usage.stored))
  }
}

extension Usage {
  /// Reads the columns after the principal.
  fileprivate init(_ row: SQLiteStatement) {
    self.init()
    stored = (1...7).map { row.int64($0) }
  }
}
