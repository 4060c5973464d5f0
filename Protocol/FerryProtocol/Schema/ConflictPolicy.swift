/// The rule to merge two devices' writes to a column (SPEC.md §6).
public enum ConflictPolicy: String, Sendable, CaseIterable {
  /// The greater stamp stays.
  case lastWriterWins = "last-writer-wins"
  /// The server's value wins against a write whose author had not seen it.
  case serverWins = "server-wins"
  /// The incoming value wins, with any clocks.
  case clientWins = "client-wins"
  /// The greatest value stays.
  case max
  /// The smallest value stays.
  case min
  /// Increments add up.
  case counter
  /// JSON arrays are united; elements are only ever added.
  case setUnion = "set-union"
  /// Texts are merged by line against the author's original text.
  case textMerge = "text-merge"
  /// The server's value wins, and the losing device is asked.
  case ask

  /// True if the server may merge two values to a third one.
  package var makesValues: Bool { self == .counter || self == .setUnion || self == .textMerge }
}

/// The rule for a delete in conflict with edits not seen by the author (SPEC.md §6).
public enum DeletePolicy: String, Sendable, CaseIterable {
  /// The record is deleted; the edits are listed as lost.
  case deleteWins = "delete-wins"
  /// The record stays, or comes back.
  case editWins = "edit-wins"
  /// The server's value wins, and the losing device is asked.
  case ask
}

/// The allowed values of a column. NULL is admitted unless the column is required.
public enum ColumnType: String, Sendable, CaseIterable {
  case text
  case integer
  /// Reals, and integers, which SQLite may store for a real without a fraction.
  case real
  case blob
  case any

  /// Returns whether a column of this type may hold `value`; NULL is not decided here and is
  /// admitted.
  package func admits(_ value: Value) -> Bool {
    switch (self, value) {
    case (.any, _), (_, .null): true
    case (.text, .text), (.integer, .integer), (.blob, .blob): true
    case (.real, .real), (.real, .integer): true
    default: false
    }
  }
}
