import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Operations of the quarantine that are written again", .hangLimit)
struct RepeatedOperationTests {
  struct Row: Sendable {
    let kind: OperationKind
    let columns: [Column]
    var increments: Set<Name> = []
    var changes: [Column] = []
    /// The value in the row; `nil` without a row.
    var present: Value?
    let written: [Column]
  }

  private static let (one, two) = (Column("n", 1), Column("n", 2))

  static let rows: [Row] = [
    Row(kind: .insert, columns: [one], written: [one]),
    Row(
      kind: .insert, columns: [one, Column("t", "x")], changes: [two],
      written: [Column("t", "x"), two]),
    Row(kind: .update, columns: [one], present: 5, written: [one]),
    Row(
      kind: .update, columns: [one], changes: [Column("t", "y")],
      written: [one, Column("t", "y")]),
    Row(kind: .update, columns: [one], increments: ["n"], present: 5, written: [Column("n", 6)]),
    Row(
      kind: .update, columns: [one], increments: ["n"], changes: [two], present: 5,
      written: [Column("n", 7)]),
    Row(kind: .update, columns: [one], increments: ["n"], present: nil, written: [one]),
    Row(kind: .update, columns: [one], increments: ["n"], present: "text", written: [one]),
    Row(
      kind: .update, columns: [one], increments: ["n"], present: .integer(.max),
      written: [Column("n", .integer(.min))]),
    Row(kind: .delete, columns: [one], changes: [two], written: [one]),
  ]

  @Test("the user's values replace those of the operation, and increments add", arguments: rows)
  func columns(row: Row) {
    var operation = SyncOperation(
      id: OperationID(UniqueID(high: 1, low: 1)), key: RecordKey(table: "t", record: "a"),
      kind: row.kind, time: .zero, columns: row.columns)
    operation.increments = row.increments
    #expect(operation.repeated(changing: row.changes) { _ in row.present } == row.written)
  }
}
