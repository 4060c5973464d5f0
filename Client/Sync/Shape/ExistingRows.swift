import FerryProtocol
import FerrySQLite

/// The rows that a table of this file has before it is tracked.
struct ExistingRows {
  let tables: LocalTables
  let capture: CaptureContext
  let limits: Limits
  private var connection: SQLiteConnection { tables.connection }

  /// The most bytes of a record's identifier in a message: an invalid one may be too long.
  private static let shownMax = 100

  /// Checks the keys of all rows.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the key of a row is not a text.
  func checkKeys(of table: TableSchema) throws {
    let record = table.record(of: "t")
    let limit = limits.recordBytes
    let shown = table.keyList.map { "quote(t.\($0))" }.joined(separator: " || ', ' || ")
    let unusable = try connection.prepare(
      """
      SELECT count(*), min(\(shown)) FROM \(table.rows) AS t
      WHERE typeof(\(record)) <> 'text' OR length(CAST(\(record) AS BLOB)) NOT BETWEEN 1 AND \(limit)
      """
    ).first { (count: $0.int64(0), example: $0.text(1)) }
    if let unusable, unusable.count > 0 {
      let wanted =
        switch table.identity {
        case .text: "no text of 1 to \(limit) bytes"
        case .mapped: "no integer"
        case .value: "NULL, a real number or too many bytes"
        }
      throw ReplicaError.cannotTrack(
        table: table.name,
        "\(unusable.count.grouped) of its rows have \(wanted) in their key "
          + table.keys.map(\.local.text).joined(separator: ", ") + ", such as the row with "
          + String(unusable.example.prefix(Self.shownMax)))
    }
  }

  /// Records rows from before the tracking of the table as inserts, by the same functions as new
  /// ones, in groups within the size of a packet.
  func record(of table: TableSchema) throws {
    let insert = try connection.prepare(CaptureTriggers.recordExisting(table))
    let rows = try connection.prepare("SELECT \(table.record(of: "t")) FROM \(table.rows) AS t")
    var inGroup = 0
    try rows.forEach { row in
      let key = row.textBytes(0)
      do {
        try insert.run(SQLiteText(key))
      } catch let error as SQLiteError where error.concernsRow {
        let shown = String(decoding: key.prefix(Self.shownMax), as: UTF8.self)
        throw ReplicaError.cannotTrack(
          table: table.name, "its row '\(shown)' cannot be recorded: \(error.message)")
      }
      inGroup += 1
      if inGroup == limits.operationsPerPacket {
        capture.endTransaction()
        inGroup = 0
      }
    }
    capture.endTransaction()
  }
}
