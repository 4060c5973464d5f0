import FerryPersistence
import FerryPlatform
import FerryProtocol

/// Reasons for users why a mirror's file refuses writes.
extension MirrorFile {
  /// Returns the reason of an error of SQLite. SQLite's own text does not always name the table.
  ///
  /// - Parameter holder: the key of the row with the write's unique value, if it is known.
  func reason(
    _ error: DatabaseError, _ write: CapturedWrite, holder: [String?]? = nil
  ) -> String {
    switch error.code {
    case 787: return referenceReason(write)
    case 1_299:
      return columns(in: error.message, of: write.table).map {
        "column \($0) of table \(write.table) is required and is NULL"
      } ?? error.message
    case 1_555, 2_067:
      return columns(in: error.message, of: write.table).map {
        Self.reason(write.table, holder, has: $0)
      } ?? error.message
    default: return error.message
    }
  }

  /// Returns the reason of a row whose unique value another one has.
  static func reason(_ table: String, _ holder: [String?]?, has columns: String) -> String {
    let row = holder.map { key in "row " + key.map { $0 ?? "NULL" }.joined(separator: ", ") }
    return "\(row ?? "another row") of table \(table) has the same \(columns)"
  }

  /// SQLite does not name the foreign key.
  private func referenceReason(_ write: CapturedWrite) -> String {
    if write.kind == .delete {
      let children = plan.tables.filter { table in
        table.references.contains { $0.table.text == write.table }
      }
      return "rows of \(Self.list(children.map(\.name))) refer to it (foreign key)"
    }
    let parents = plan.table(write.table)?.references.map(\.table) ?? []
    return "it refers to a row of \(Self.list(parents)) missing in the space (foreign key)"
  }

  private static func list(_ tables: [Name]) -> String {
    if tables.isEmpty { return "another table" }
    return "table " + Set(tables).sorted().map(\.text).joined(separator: " or ")
  }

  /// Returns the columns in SQLite's list `table.column, table.column`; `nil` if there is none.
  private func columns(in message: String, of table: String) -> String? {
    let (bytes, mark) = (Array(message.utf8), Array(": \(table).".utf8))
    let start = bytes.indices.first { bytes[$0...].starts(with: mark) }
    guard let start else { return nil }
    // text: the whole names of one table
    return String(decoding: bytes[(start + mark.count)...], as: UTF8.self)
      .replacing(bytes: ", \(table).", with: ", ")
  }
}
