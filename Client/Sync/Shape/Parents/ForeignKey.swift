import FerryProtocol
import FerrySQLite

/// A foreign key from rows of a table to a parent; pure. Names are those in this file.
struct ForeignKey: Equatable {
  /// The action of SQLite when a parent's row is deleted, or a value of it changes
  /// (https://sqlite.org/foreignkeys.html#fk_actions).
  enum Action: String {
    case cascade = "CASCADE"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
    case restrict = "RESTRICT"
    case none = "NO ACTION"

    /// True if SQLite changes or deletes the child's rows.
    var changesRows: Bool {
      switch self {
      case .cascade, .setNull, .setDefault: true
      case .restrict, .none: false
      }
    }
  }

  /// The number in the child's schema.
  var id: Int64 = 0
  let child: TableSchema
  let parent: Name
  /// The child's columns, and the parent's in the same order.
  var from: [Name]
  var to: [Name]
  let onDelete: Action
  var onUpdate = Action.none
  /// The rule declared by the space's schema.
  var declared: ClashRule?
  /// The reference by the parent's identifier, as the space knows it; `nil` for other columns of the
  /// parent, and for an untracked one.
  var reference: RecordReference?

  // MARK: Rules

  /// The rule for rows after their parent is deleted elsewhere; `nil` if SQLite changes the rows,
  /// and no rule is declared.
  var rule: ClashRule? {
    if let declared { return declared }
    switch onDelete {
    case .cascade: return .childGoes
    case .restrict, .none: return .parentReturns
    case .setNull, .setDefault: return nil
    }
  }

  /// True if the parent returns.
  var keepsParent: Bool { rule == .parentReturns || rule == .ask }

  /// True if the child's rows follow changed values of the parent. A record's key never changes: an
  /// update of it is a delete and an insert.
  func followsValues(of parent: TableSchema) -> Bool {
    onUpdate.changesRows && self.parent.folded == parent.local.folded
      && !to.contains { to in parent.keys.contains { $0.local.folded == to.folded } }
  }

  // MARK: SQL

  /// Returns the condition for rows with a reference to each other.
  ///
  /// - Parameters:
  ///   - parent: the parent's name in the statement. The collation of the parent's column, the first
  ///     of each comparison, decides.
  ///   - child: the child's name in the statement.
  func match(parent: String = "p", child: String = "c") -> String {
    zip(from, to).map { "\(parent).\(quoted($1)) = \(child).\(quoted($0))" }
      .joined(separator: " AND ")
  }

  /// Returns the condition for a child's row without a parent.
  func isDangling(child: String = "c") -> String {
    (from.map { "\(child).\(quoted($0)) IS NOT NULL" }
      + ["NOT EXISTS (SELECT 1 FROM \(quoted(parent)) AS p WHERE \(match(child: child)))"])
      .joined(separator: " AND ")
  }

  // MARK: Records

  /// Returns the record referred to by a row with this identifier and these columns.
  func parent(of record: Name, _ columns: [Column]) -> RecordKey? {
    reference?.target(of: record, columns)
  }

  /// Whether rows may no longer refer to their parents after a batch on their table.
  func mayLose(by operation: SyncOperation) -> Bool {
    if operation.batch?.effect == .delete { return true }
    guard case .column(let name) = reference?.place else { return false }
    return operation.columns.contains { $0.name == name }
  }
}

/// The identifier of a parent in a row of the space.
struct RecordReference: Equatable {
  /// The place of the identifier, or of the value.
  enum Place: Equatable {
    case column(Name)
    /// A part of the row's own key.
    case key(Int, of: Int)
    /// The row's own identifier.
    case record
  }

  /// The parent's name in the space.
  let table: Name
  let place: Place
  /// True if the parent's identifier is made of the value in the referring row.
  let isValue: Bool

  /// - Parameters:
  ///   - parent: the tracked parent.
  ///   - to: the parent's column for each of the child's.
  init?(from child: TableSchema, _ from: [Name], to parent: TableSchema, _ to: [Name]) {
    guard parent.keys.count == 1,
      let index = to.firstIndex(where: { $0.folded == parent.key.folded }),
      let place = child.place(of: from[index])
    else { return nil }
    (table, self.place) = (parent.name, place)
    isValue = parent.identity == .value && parent.keys[0].numbers == nil
  }

  fileprivate func target(of record: Name, _ columns: [Column]) -> RecordKey? {
    guard let value = value(record, columns) else { return nil }
    if isValue {
      return KeyCodec.record(for: [value]).map { RecordKey(table: table, record: Name($0)) }
    }
    guard case .text(let record) = value else { return nil }
    return RecordKey(table: table, record: Name(record))
  }

  private func value(_ record: Name, _ columns: [Column]) -> Value? {
    switch place {
    case .column(let name): columns.first { $0.name == name }?.value
    case .key(let index, let count): KeyCodec.key(of: record.text, columns: count)?[index]
    case .record: .text(record.text)
    }
  }
}

extension TableSchema {
  fileprivate func place(of local: Name) -> RecordReference.Place? {
    if let column = columns.first(where: { $0.local.folded == local.folded }) {
      return .column(column.name)
    }
    guard let index = keys.firstIndex(where: { $0.local.folded == local.folded }) else {
      return nil
    }
    switch identity {
    case .mapped: return nil
    case .text: return .record
    case .value:
      return keys.count == 1 && keys[0].numbers != nil ? .record : .key(index, of: keys.count)
    }
  }
}
