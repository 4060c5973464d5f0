import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Queries", .hangLimit)
struct QueryTests {
  private func filled() async throws -> Fixture {
    let fixture = try await Fixture()
    try await fixture.insert(
      Note(id: "a", title: "apple", done: true, list: "l1"),
      Note(id: "b", title: "Banana 100%", done: false, list: "l1"),
      Note(id: "c", title: nil, done: false, list: "l2"), Note(id: "d", title: "date", list: "l2"))
    return fixture
  }

  @Test("conditions have SQL's meaning, NULL included")
  func conditions() async throws {
    let (title, done) = (Field("title"), Field("done"))
    let cases: [(Condition, String)] = [
      (.always, "abcd"), (done == true, "a"), (done != true, "bc"), (done == nil as Bool?, "d"),
      (done != nil as Bool?, "abc"), (title.isNull, "c"), (!title.isNull, "abd"),
      (title < "b", "ab"), (title <= "apple", "ab"), (title > "apple", "d"),
      (title >= "apple", "ad"), (Field("id").between("b", and: "c"), "bc"),
      (Field("id").in(["a", "d", "x"]), "ad"), (Field("id").in([String]()), ""),
      (title.like("%A%"), "abd"), (title.like(#"%\%"#), "b"), (title.like("_ate"), "d"),
      (done == true || title.isNull, "ac"), (done == false && title.isNull, "c"),
      (!(done == true || title.isNull), "b"), (.and([]), "abcd"), (.or([]), ""),
      (title == "'; DROP TABLE notes; --", ""),
    ]
    let fixture = try await filled()
    for (condition, expected) in cases {
      #expect(try await fixture.ids(condition).joined() == expected, "\(condition)")
    }
  }

  @Test("queries are values that compose in any order")
  func composition() async throws {
    let fixture = try await filled()
    let firstList = Query().where(Field("list") == "l1")
    let byTitle = Query().order(Field("title").descending)
    let open = firstList.where(Field("done") == false)
    #expect(firstList.applying(byTitle) == Query().applying(firstList).applying(byTitle))
    #expect(try await fixture.notes(firstList.applying(byTitle)).map(\.id) == ["a", "b"])
    #expect(try await fixture.notes(open).map(\.id) == ["b"])
    let page = Query().order(Field("done").ascending, Field("id").descending).limit(2, offset: 1)
    #expect(try await fixture.notes(page).map(\.id) == ["c", "b"])
    #expect(try await fixture.notes(page.limit(0)).isEmpty)
  }

  @Test("distinct, count, exists and first look at the same rows as fetch")
  func results() async throws {
    let fixture = try await filled()
    try await fixture.database.read { database throws in
      let lists = Note.all.select("list").distinct().order(Field("list").ascending)
      let columns = try lists.records(as: RecordColumns.self).fetch(database)
      #expect(columns == [["list": "l1"], ["list": "l2"]])
      #expect(try lists.count(database) == 2)
      #expect(try Note.all.limit(3, offset: 2).count(database) == 2)
      #expect(try Note.all.where(Field("title").isNull).exists(database))
      #expect(try !Note.all.where(Field("title") == "x").exists(database))
      #expect(try Note.all.order(Field("id").descending).first(database)?.id == "d")
      #expect(try Note.all.limit(0).first(database) == nil)
      var ids: [String] = []
      try Note.all.order(Field("id").ascending).forEach(database) { note in
        // The same query within itself.
        ids.append(note.id + "\(try Note.all.where(Field("id") <= note.id).count(database))")
      }
      #expect(ids == ["a1", "b2", "c3", "d4"])
    }
  }

  @Test("rows found are updated and deleted together, also the first few of an order")
  func changes() async throws {
    let fixture = try await filled()
    try await fixture.database.write { database throws in
      let open = Note.all.where(Field("done") == false)
      #expect(try open.update(["done": true, "title": "x"], in: database) == 2)
      #expect(try open.update(["done": true], in: database) == 0)
      let last = Note.all.order(Field("id").descending).limit(2)
      #expect(try last.update(["list": "l3"], in: database) == 2)
      #expect(try Note.all.where(Field("list") == "l1").delete(in: database) == 2)
      #expect(try last.limit(1).delete(in: database) == 1)
    }
    #expect(try await fixture.notes() == [Note(id: "c", title: "x", done: true, list: "l3")])
  }

  @Test("a misspelt column fails with the names of the table's columns, wherever it is")
  func misspelt() async throws {
    let fixture = try await filled()
    for query in [
      Query().where(Field("titel") == "x"), Query().order(Field("titel").ascending),
      Query().select("titel"), Query().where(!(Field("id") == "a" || Field("titel").isNull)),
      Query().where(Field("titel\" = '' --") == 1),
    ] {
      let error = await failure(RecordError.self) { _ = try await fixture.notes(query) }
      #expect(error?.kind == .unknownColumn)
      #expect(error?.message.hasSuffix("it has id, title, done, list") == true)
      let count = await failure(RecordError.self) {
        _ = try await fixture.database.read { try Note.all.applying(query).count($0) }
      }
      // A count needs neither order nor selection.
      #expect(count == (query.condition == .always ? nil : error))
    }
  }

  @Test("names with quotes, spaces and keywords are columns like others")
  func strangeNames() async throws {
    let name: Name = "group \"by\" select"
    let table = Table<RecordColumns>(
      "order", [.text(name).primaryKey(), .integer("index")], indexes: [IndexDefinition("index")])
    let fixture = try await Fixture()
    let found = try await fixture.database.write { database throws in
      try table.insert(["group \"by\" select": "k", "index": 1], in: database)
      try table.all.where(Field(name) == "k").update(["index": 2], in: database)
      return try table.all.where(Field("index") == 2 && Field(name) == "k").fetch(database)
    }
    #expect(found == [["group \"by\" select": "k", "index": 2]])
  }

  @Test("a negative limit or offset is rejected")
  func limits() async throws {
    let fixture = try await filled()
    for query in [Query().limit(-1), Query().limit(1, offset: -1)] {
      let error = await failure(RecordError.self) { _ = try await fixture.notes(query) }
      #expect(error?.kind == .invalid)
    }
  }

  @Test("a condition of thousands of parts fits SQLite's limits")
  func largeConditions() async throws {
    let fixture = try await filled()
    let parts = (0..<5_000).map { Field("id") == "\($0)" }
    let any = parts.reduce(Field("id") == "a") { $0 || $1 }
    let none = parts.reduce(Field("id") != "b") { $0 && !$1 }
    #expect(try await fixture.ids(any) == ["a"])
    #expect(try await fixture.ids(none) == ["a", "c", "d"])
  }
}
