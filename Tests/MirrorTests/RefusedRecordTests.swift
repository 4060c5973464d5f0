import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Transactions of programs refused by the space, before a retry.
@Suite("Refused transactions of programs", .hangLimit)
struct RefusedRecordTests {
  private static let account = RecordKey(table: "accounts", record: "a")

  private func operation(
    _ kind: OperationKind, _ columns: [Column] = [], adds: Set<Name> = []
  ) -> SyncOperation {
    SyncOperation(
      id: OperationID(UniqueID(high: 1, low: 1)), key: Self.account, kind: kind, time: .zero,
      columns: columns, increments: adds)
  }

  private func row(_ operations: SyncOperation...) -> RefusedRecords.Row? {
    RefusedRecords(operations).rows[Self.account]
  }

  @Test("an amount is added to the space's value, so a row that has it already is not current")
  func amounts() throws {
    let update = operation(
      .update, [Column("sum", .integer(40)), Column("note", .text("x"))], adds: ["sum"])
    let more = operation(.update, [Column("sum", .integer(2))], adds: ["sum"])
    let found = try #require(row(update, more))
    // The table has 142: the first space lacks the amounts, and the second one has them.
    #expect(
      found.values(over: ["sum": .integer(100)]) == ["sum": .integer(142), "note": .text("x")])
    #expect(found.values(over: ["sum": .integer(142)])?["sum"] == .integer(184))
    #expect(found.values(over: [:]) == nil)
    #expect(found.values(over: ["sum": .integer(.max)]) == nil)
  }

  @Test("the last operation on a row counts, and amounts after a value belong to it")
  func values() {
    let insert = operation(.insert, [Column("sum", .integer(5))])
    let adding = operation(.update, [Column("sum", .integer(3))], adds: ["sum"])
    #expect(row(insert, adding)?.values(over: [:]) == ["sum": .integer(8)])
    #expect(row(adding, operation(.update, [Column("sum", .integer(1))]))?.added == [:])
    #expect(row(insert, operation(.delete)) == RefusedRecords.Row(isDelete: true))
    #expect(row(operation(.delete), insert)?.isDelete == false)
  }
}
