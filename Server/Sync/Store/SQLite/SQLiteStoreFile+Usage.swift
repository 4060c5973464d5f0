import FerryProtocol
import FerrySQLite

/// The users of devices, and the use of a space by principals.
extension SQLiteStoreFile {
  /// The name of all principals together.
  private static let everybody = ""

  func loadUsage(
    of principals: [Principal], in space: Int64, into context: inout IngestContext
  ) throws {
    for principal in Set(principals + [.anonymous]) {
      context.usage[principal] = try usage(of: principal.id, in: space)
    }
    context.total = try usage(of: Self.everybody, in: space) ?? Usage()
  }

  private func usage(of principal: String, in space: Int64) throws -> Usage? {
    try connection.first(
      """
      SELECT bytes, records, devices, packets, packet_bytes, day, written FROM usage
      WHERE space = ? AND principal = ?
      """, space, principal
    ) { Usage($0, from: 0) }
  }

  /// Returns all of a space's rows, by principal; the first one is for all principals together.
  func usageList(in space: Int64) throws -> [(principal: String, usage: Usage)] {
    try connection.rows(
      """
      SELECT principal, bytes, records, devices, packets, packet_bytes, day, written FROM usage
      WHERE space = ? ORDER BY principal
      """, space
    ) { ($0.text(0), Usage($0, from: 1)) }
  }

  func saveOwners(_ owners: [DeviceID: Principal], in space: Int64, now: Int64) throws {
    if owners.isEmpty { return }
    let upsert = try connection.statement(
      """
      INSERT INTO devices(space, device, principal, seen_at) VALUES (?, ?, ?, ?)
      ON CONFLICT(space, device) DO UPDATE SET principal = excluded.principal
      """)
    for (device, principal) in owners.sorted(by: { $0.key < $1.key }) {
      try upsert.run(space, device.value, principal.id, now)
    }
  }

  func saveUsage(_ effects: IngestEffects, in space: Int64) throws {
    for (principal, usage) in effects.usage.sorted(by: { $0.key.id < $1.key.id }) {
      try save(usage, of: principal.id, in: space)
    }
    if let total = effects.total { try save(total, of: Self.everybody, in: space) }
  }

  private func save(_ usage: Usage, of principal: String, in space: Int64) throws {
    try connection.run(
      """
      INSERT INTO usage(space, principal, bytes, records, devices, packets, packet_bytes, day,
        written) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(space, principal) DO UPDATE SET bytes = excluded.bytes,
        records = excluded.records, devices = excluded.devices, packets = excluded.packets,
        packet_bytes = excluded.packet_bytes, day = excluded.day, written = excluded.written
      """, space, principal, SQLiteList(usage.stored))
  }
}

extension Usage {
  /// Reads a row's columns, beginning at one of them.
  fileprivate init(_ row: SQLiteStatement, from first: Int32) {
    self.init()
    bytes = row.int64(first)
    records = row.int64(first + 1)
    devices = row.int64(first + 2)
    packets = row.int64(first + 3)
    packetBytes = row.int64(first + 4)
    day = row.int64(first + 5)
    written = row.int64(first + 6)
  }
}
