import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// SQLite's plans for the statements of queries (https://sqlite.org/eqp.html).
@Suite("Plans of queries", .hangLimit)
struct QueryPlanTests {
  private func plan<R: Record>(_ query: TableQuery<R>, _ fixture: Fixture) async throws -> String {
    try await fixture.database.write { database throws in
      try query.table.create(in: database)
      let source = try query.table.layout.source(in: database)
      let (sql, values) = try QuerySQL.select(query.query, from: source)
      return try database.query("EXPLAIN QUERY PLAN \(sql)", values).map { row in
        guard case .text(let detail) = row["detail"] else { return "" }
        return detail
      }.joined(separator: "; ")
    }
  }

  @Test("conditions and orders use the table's key and indexes")
  func indexes() async throws {
    let fixture = try await Fixture()
    let cases: [(TableQuery<Note>, String)] = [
      (Note.all.where(Field("id") == "a"), "SEARCH r USING INDEX sqlite_autoindex_notes_1 (id=?)"),
      (
        Note.all.where(Field("list") == "l" && Field("title") > "a"),
        "SEARCH r USING INDEX index of notes(list,title) (list=? AND title>?)"
      ),
      (
        Note.all.where(Field("list") == "l").order(Field("title").ascending),
        "SEARCH r USING INDEX index of notes(list,title) (list=?)"
      ),
      (
        Note.all.where(Field("list").in(["a", "b"])),
        "SEARCH r USING INDEX index of notes(list,title) (list=?)"
      ),
      (
        Note.all.where(Field("list").between("a", and: "b")),
        "SEARCH r USING INDEX index of notes(list,title) (list>? AND list<?)"
      ),
    ]
    for (query, expected) in cases {
      #expect(try await plan(query, fixture) == expected)
    }
  }

  @Test("queries on a split table use the indexes of its parts")
  func splitTables() async throws {
    let fixture = try await Fixture()
    let rows = try await plan(SplitTests.byRows.all.where(Field("id") == "a"), fixture)
    #expect(rows.contains("sqlite_autoindex_recent_1 (id=?)"), "\(rows)")
    #expect(rows.contains("sqlite_autoindex_archive_1 (id=?)"), "\(rows)")
    let columns = try await plan(SplitTests.byColumns.all.where(Field("id") == "a"), fixture)
    #expect(columns.contains("sqlite_autoindex_heads_1 (id=?)"), "\(columns)")
    #expect(columns.contains("sqlite_autoindex_bodies_1 (id=?)"), "\(columns)")
    #expect(!columns.contains("SCAN"), "\(columns)")
  }
}
