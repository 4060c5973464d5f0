import FerryProtocol

/// A row of the replica that the table in PostgreSQL may not have.
struct MirrorRow: Sendable, Equatable {
  /// The position of the table in the plan.
  var table: Int
  var key: [Value]
  /// The values of the other columns; `nil` if the row is deleted.
  var values: [Value]?
  /// The record's identifier in a mapped table, if it is known.
  var record: String?
  /// The device that has changed the row; `nil` if it is not known.
  var device: String?
}

/// A row of the replica as PostgreSQL reads it.
struct MirrorTexts: Sendable {
  var row: MirrorRow
  var key: [String?]
  /// The values of the other columns; `nil` if the row is deleted.
  var texts: [String?]?

  var bytes: Int { (texts ?? []).reduce(0) { $0 + ($1?.utf8.count ?? 0) } }
}
