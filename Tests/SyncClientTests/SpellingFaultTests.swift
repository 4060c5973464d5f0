import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Reasons of changes whose names are spelled differently here", .hangLimit)
struct SpellingFaultTests {
  private static func column(_ name: Name, called local: Name? = nil) -> TableSchema.ColumnInfo {
    TableSchema.ColumnInfo(name: name, local: local ?? name, defaultSQL: nil, isRequired: false)
  }

  private static func table(_ columns: TableSchema.ColumnInfo...) -> TableSchema {
    TableSchema(name: "t", keys: [KeyColumn(local: "id", type: "TEXT")], columns: columns)
  }

  /// Returns the reason of a change that writes some columns.
  private static func reason(
    _ columns: Name..., in schema: TableSchema?, of table: Name = "t"
  ) -> String? {
    let change = PageMaker().change(1, table, "a", columns.map { Column($0, 1) })
    return SpellingFault.reason(of: change, in: schema)
  }

  @Test("a table or column with the name in another case is named")
  func spellings() throws {
    let table = Self.table(Self.column("v"))
    #expect(Self.reason("v", in: table) == nil)
    #expect(Self.reason("w", in: table) == nil, "an absent column is no matter of spelling")
    #expect(Self.reason("v", in: nil) == nil)
    let other = try #require(Self.reason("v", in: table, of: "T"))
    #expect(other.contains("its table is T, but SQLite uses the existing table t"))
    let column = try #require(Self.reason("v", "V", in: table))
    #expect(column.contains("drop v, and add V"))
    #expect(try #require(Self.reason("ID", in: table)).contains("drop id, and add ID"))
  }

  @Test("the name of a renamed column is named, unless another column here is the space's own")
  func renamed() throws {
    let renamed = Self.column("y", called: "x")
    let reason = try #require(Self.reason("x", in: Self.table(renamed)))
    #expect(reason.contains("the column x here is the column y of the space"))
    #expect(reason.contains("give the one here another name, and add x"))
    // The space's x is the column z here, so x waits for nothing.
    let both = Self.table(renamed, Self.column("x", called: "z"))
    #expect(Self.reason("x", "absent", in: both) == nil)
  }
}
