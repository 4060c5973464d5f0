import FerryProtocol

/// The remote change being applied to one record. Decides the origin of each write to a tracked
/// table meanwhile (SPEC.md §28, "Triggers of the user").
///
/// SQLite deletes a row in this order (https://sqlite.org/lang_createtrigger.html): BEFORE triggers,
/// the row, actions of foreign keys with the triggers that they fire, AFTER triggers. Ferry's
/// triggers are the newest of their table, so they fire first.
struct AppliedChange {
  /// The effect of the change on the record.
  enum Effect {
    case values
    case delete
    /// A delete of this device's own: the record has lost its parent.
    case orphan
  }

  /// The origin of a write.
  enum Origin {
    /// The remote change itself.
    case change
    /// A trigger of the user that has run at the author of the change, too. Ferry ignores the write.
    case author
    /// This device: no other one has made the write. Ferry records it.
    case device
  }

  let key: RecordKey
  let effect: Effect
  /// The writes of other devices to the record; `nil` if this device makes the change.
  var state: RecordState?
  /// True if the record has its new state; triggers make all later writes.
  var isApplied = false
  /// True while this device deletes rows that go with the record, before SQLite deletes it.
  var isTakingAlong = false
  /// True since the record's row was seen to be gone. Until ``isApplied``, foreign keys act.
  private var isGone = false

  init(key: RecordKey, effect: Effect) { (self.key, self.effect) = (key, effect) }

  /// Returns the origin of a write that SQLite is about to make.
  ///
  /// - Parameters:
  ///   - isRecord: true if it concerns the record itself.
  ///   - hasRow: returns true if the record has a row.
  ///   - hasLostParent: returns true if the written row refers to a removed row of an untracked table.
  mutating func origin(
    of write: OperationKind, isRecord: Bool, hasRow: () throws -> Bool,
    hasLostParent: () throws -> Bool
  ) rethrows -> Origin {
    switch effect {
    case .values: return isRecord && !isApplied ? .change : .author
    case .orphan: return isRecord && write == .delete && !isApplied ? .change : .device
    case .delete: break
    }
    if isApplied { return try isAction(write, hasLostParent) ? .device : .author }
    if isRecord && write == .delete { return .change }
    if isTakingAlong || isGone { return .device }
    isGone = try !hasRow()
    if isGone { return .device }
    return try isAction(write, hasLostParent) ? .device : .author
  }

  /// Returns true if a foreign key makes the write, since a trigger has removed a row of a table
  /// that does not sync. SQLite would reject the whole delete without it.
  private func isAction(
    _ write: OperationKind, _ hasLostParent: () throws -> Bool
  ) rethrows -> Bool {
    try write != .insert && hasLostParent()
  }
}
