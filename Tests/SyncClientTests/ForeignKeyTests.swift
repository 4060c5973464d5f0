import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The facts of a foreign key", .hangLimit)
struct ForeignKeyTests {
  private static func key(
    _ from: [Name], _ to: [Name], onUpdate: ForeignKey.Action = .none
  ) -> ForeignKey {
    ForeignKey(
      child: child, parent: "Lists", from: from, to: to, onDelete: .none, onUpdate: onUpdate,
      reference: RecordReference(from: child, from, to: parent(), to))
  }

  private static let child = TableSchema(
    name: "tasks", keys: [KeyColumn(local: "id", type: "TEXT")],
    columns: [.init(name: "list", local: "place", defaultSQL: nil, isRequired: false)])

  private static func parent(_ identity: KeyIdentity = .text) -> TableSchema {
    TableSchema(
      name: "lists", keys: [KeyColumn(local: "id", type: "TEXT")], identity: identity, columns: [])
  }

  @Test("the record of a parent is named by a column or by the row's own key")
  func reference() {
    let columns = [Column("list", .text("a")), Column("title", .text("b"))]
    let parent = RecordKey(table: "lists", record: "a")
    #expect(Self.key(["place"], ["ID"]).parent(of: "x", columns) == parent)
    #expect(Self.key(["place", "id"], ["code", "id"]).parent(of: "a", columns) == parent)
    #expect(Self.key(["place"], ["code"]).parent(of: "x", columns) == nil)
    #expect(Self.key(["place"], ["id"]).parent(of: "x", [Column("list", .null)]) == nil)
    let value = RecordReference(from: Self.child, ["place"], to: Self.parent(.value), ["id"])
    #expect(value?.isValue == true)
  }

  @Test(
    "rows follow values other than the parent's key, if SQLite changes them",
    arguments: [
      (["code"], .cascade, true), (["code"], .setDefault, true), (["code"], .none, false),
      (["code"], .restrict, false), (["ID"], .cascade, false), (["code", "id"], .setNull, false),
    ] as [([Name], ForeignKey.Action, Bool)])
  func follows(to: [Name], onUpdate: ForeignKey.Action, expected: Bool) {
    let key = Self.key(Array(repeating: "place", count: to.count), to, onUpdate: onUpdate)
    #expect(key.followsValues(of: Self.parent()) == expected)
  }
}
