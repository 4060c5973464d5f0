import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A foreign key of a tracked table to another tracked table's key of one column.
struct ForeignKeyLink {
  /// The place of the identifier, or of the value, that a row refers to.
  enum Place {
    case column(Name)
    /// A part of the row's own key.
    case key(Int, of: Int)
    /// The row's own identifier.
    case record
  }

  let child: Name
  let place: Place
  let parent: Name
  /// True if the parent's identifier is made of the value in the referring row.
  let isValue: Bool

  /// Returns the record referred to by a row with this identifier and these columns.
  func parent(of record: Name, _ columns: [Column]) -> RecordKey? {
    guard let value = value(record, columns), let found = identifier(value) else { return nil }
    return RecordKey(table: parent, record: Name(found))
  }

  /// Whether rows may no longer refer to their parents after a batch on their table.
  func mayLose(by operation: SyncOperation) -> Bool {
    if operation.batch?.effect == .delete { return true }
    guard case .column(let name) = place else { return false }
    return operation.columns.contains { $0.name == name }
  }

  private func value(_ record: Name, _ columns: [Column]) -> Value? {
    switch place {
    case .column(let name): columns.first { $0.name == name }?.value
    case .key(let index, let count): KeyCodec.key(of: record.text, columns: count)?[index]
    case .record: .text(record.text)
    }
  }

  private func identifier(_ value: Value) -> String? {
    if isValue { return KeyCodec.record(for: [value]) }
    guard case .text(let record) = value else { return nil }
    return record
  }
}

extension ReplicaFile {
  /// Returns the references between records of tracked tables.
  func foreignKeyLinks() throws -> [ForeignKeyLink] {
    let tracked = try spaceNames().tracked.sorted { $0.space < $1.space }
    return try tracked.flatMap { child -> [ForeignKeyLink] in
      guard let table = try? schema(of: child.space) else { return [] }
      return try table.references.compactMap { try link(of: table, by: $0) }
    }
  }

  private func link(
    of table: TableSchema, by reference: TableSchema.Reference
  ) throws -> ForeignKeyLink? {
    guard let space = try trackedTable(local: reference.table),
      let parent = try? schema(of: space), parent.keys.count == 1,
      reference.to.map({ $0.folded == parent.key.folded }) ?? (reference.place == 0),
      let place = table.place(of: reference.from)
    else { return nil }
    let isValue = parent.identity == .value && parent.keys[0].numbers == nil
    return ForeignKeyLink(child: table.name, place: place, parent: space, isValue: isValue)
  }
}

extension TableSchema {
  fileprivate func place(of local: Name) -> ForeignKeyLink.Place? {
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
