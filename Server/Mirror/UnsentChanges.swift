import FerryPersistence
import FerryProtocol
import Foundation

/// A change of a program to an unsent row that the space lacks, in a column whose writes the space
/// adds up or merges.
struct UnsentChange: Sendable, Equatable {
  enum Content: Sendable, Equatable {
    /// The program has not changed the column.
    case none
    /// An amount is a change from 0.
    case change(from: Value, to: Value)
    /// The space may lack more: the column travels as the table has it.
    case whole
  }

  /// The place of a refused operation; `nil` for a write that failed in the mirror's file.
  var place: Int64?
  var column: Name
  var content: Content
}

extension [UnsentChange] {
  /// Returns the value of a column after a retry of the row: the changes are made again over the
  /// space's value, so devices' writes to the unsent row stay. The table's value counts if a change
  /// is not known.
  func value(of column: MirrorColumn, in table: Value, over present: Value) -> Value {
    let changes = filter { $0.column == column.name }
    if changes.isEmpty { return table }
    if column.policy == .counter {
      guard case .integer = table, case .integer = present else { return table }
    }
    var value = present
    for change in changes {
      switch change.content {
      case .none: continue
      case .whole: return table
      case .change(let former, let new):
        guard let next = column.added(new, over: value, from: former) else { return table }
        value = next
      }
    }
    return value
  }
}

extension MirrorTable {
  /// The columns whose writes the space adds up or merges.
  var merging: [MirrorColumn] {
    columns.filter { [.counter, .textMerge].contains($0.policy) }
  }
}

extension [CapturedWrite] {
  /// The writes, with retries of rows changed by others of them as usual whole rows: these contain
  /// the other writes, of which some may fail.
  var separatingRetries: [CapturedWrite] {
    guard contains(where: \.isRetry) else { return self }
    let written = Set(filter { !$0.isRetry }.flatMap(\.rows))
    return map { write in
      var write = write
      if written.contains([write.table] + write.key) { write.isRetry = false }
      return write
    }
  }
}

extension CapturedWrite {
  /// Returns what the space lacks of a write that has failed in the mirror's file.
  func unsentChanges(of table: MirrorTable) -> [UnsentChange] {
    table.merging.map { column in
      UnsentChange(place: nil, column: column.name, content: content(of: column))
    }
  }

  private func content(of column: MirrorColumn) -> UnsentChange.Content {
    guard kind == .update else { return .whole }
    guard let place = names.firstIndex(of: column.name.text) else { return .none }
    guard let new = try? column.value(of: values[place]),
      let old = try? column.value(of: former[place])
    else { return .whole }
    switch (column.policy, old, new) {
    case (.counter, .integer, .integer), (.textMerge, .text, .text):
      return .change(from: old, to: new)
    default: return .whole
    }
  }
}

/// The changes of programs to unsent rows, in the mirror's file. A refused operation is there after
/// it has left the quarantine.
struct UnsentChanges {
  let database: Database

  static let tables = """
    CREATE TABLE IF NOT EXISTS "mirror.lacking"(
      tab TEXT NOT NULL, key TEXT NOT NULL, col TEXT NOT NULL, seq INTEGER,
      whole INTEGER NOT NULL, old, new, UNIQUE(tab, key, col, seq));
    """

  /// Returns what the space lacks of an unsent row to send again; empty for other writes.
  func changes(of write: CapturedWrite, _ refused: RefusedRows) throws -> [UnsentChange] {
    guard write.isRetry else { return [] }
    let present = refused.changes[[write.table] + write.key] ?? []
    let places = Set(present.compactMap(\.place))
    // An operation recorded before a kill may still be in the quarantine.
    return try changes(write.table, write.key)
      .filter { $0.place.map(places.contains) != true } + present
  }

  /// Forgets the changes of the rows of a write: the space gets the rows.
  func forget(after write: CapturedWrite) throws {
    guard write.kind != .update, try hasAny() else { return }
    for row in write.rows { try forget(write.table, Array(row.dropFirst())) }
  }

  /// Returns the recorded changes of a row.
  private func changes(_ table: String, _ key: [String?]) throws -> [UnsentChange] {
    try database.query(
      repeated: """
        SELECT col, seq, whole, old, new FROM "mirror.lacking" WHERE tab = ? AND key = ?
        ORDER BY rowid
        """, [.text(table), .text(try MirrorTaking.text(of: key))]
    ).compactMap { row in
      guard case .text(let column) = row["col"] else { return nil }
      var change = UnsentChange(place: nil, column: Name(column), content: .none)
      if case .integer(let place) = row["seq"] { change.place = place }
      if row["whole"] == .integer(1) {
        change.content = .whole
      } else if row["new"] != .null {
        change.content = .change(from: row["old"], to: row["new"])
      }
      return change
    }
  }

  /// - Parameter row: the table and the key.
  func store(_ changes: [UnsentChange], of row: [String?]) throws {
    if changes.isEmpty { return }
    let (table, text) = (row[0] ?? "", try MirrorTaking.text(of: Array(row.dropFirst())))
    for change in changes {
      var (old, new) = (Value.null, Value.null)
      if case .change(let from, let to) = change.content { (old, new) = (from, to) }
      try database.execute(
        repeated: "INSERT OR REPLACE INTO \"mirror.lacking\" VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
          .text(table), .text(text), .text(change.column.text),
          change.place.map { .integer($0) } ?? .null,
          .integer(change.content == .whole ? 1 : 0), old, new,
        ])
    }
  }

  /// Gives the changes of a column the new name in the table.
  func rename(_ column: Name, of table: Name, to new: Name) throws {
    // A new file renames before it has the table.
    try database.execute(Self.tables)
    try database.execute(
      single: "UPDATE OR REPLACE \"mirror.lacking\" SET col = ? WHERE tab = ? AND col = ?",
      [.text(new.text), .text(table.text), .text(column.text)])
  }

  /// Returns `true` if changes of any row are recorded.
  func hasAny() throws -> Bool {
    try !database.query(repeated: "SELECT 1 FROM \"mirror.lacking\" LIMIT 1", []).isEmpty
  }

  /// Forgets the changes of a row: the space has it as the table, or the table has another row.
  func forget(_ table: String, _ key: [String?]) throws {
    try database.execute(
      repeated: "DELETE FROM \"mirror.lacking\" WHERE tab = ? AND key = ?",
      [.text(table), .text(try MirrorTaking.text(of: key))])
  }

  /// Forgets all changes: no row is unsent.
  func forgetAll() throws { try database.execute("DELETE FROM \"mirror.lacking\"") }

  /// Records what the space lacks of a write that has failed in the file.
  func record(_ failed: CapturedWrite, of table: MirrorTable, _ refused: RefusedRows) throws {
    if table.merging.isEmpty { return }
    let changes = failed.unsentChanges(of: table)
    if failed.isRetry {
      // A retry adds nothing to the known changes.
      let row = [failed.table] + failed.key
      guard try self.changes(failed.table, failed.key).isEmpty, refused.changes[row] == nil
      else { return }
    } else if failed.kind != .update {
      try forget(failed.table, failed.key)
    }
    try store(changes, of: [failed.table] + failed.key)
    guard failed.kind == .rekey else { return }
    try forget(failed.table, failed.former)
    try store(changes, of: [failed.table] + failed.former)
  }
}
