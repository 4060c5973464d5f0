import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

private struct Refused: Error, Equatable { let reason: String }

private final class Journal: Sendable {
  private let lines = Mutex<[String]>([])
  func add(_ line: String) { lines.withLock { $0.append(line) } }
  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

@Suite("Data centers and interceptors", .hangLimit)
struct InterceptorTests {
  @Test("a transaction over several tables takes effect as a whole or not at all")
  func transaction() async throws {
    let fixture = try await Fixture()
    let center = DataCenter(fixture.database)
    let error = await failure(Refused.self) {
      try await center.write { database throws in
        try Note(id: "a").insert(in: database)
        try Item.full.insert(in: database)
        throw Refused(reason: "changed my mind")
      }
    }
    #expect(error == Refused(reason: "changed my mind"))
    #expect(try await fixture.notes().isEmpty)
    let note = try await center.write { database throws in
      try Item.full.insert(in: database)
      try Note(id: "a", title: Item.full.title).insert(in: database)
      return try Note.find("a", in: database)
    }
    #expect(note?.title == Item.full.title)
  }

  @Test("what a data center hands out cannot write back")
  func isolation() async throws {
    let fixture = try await Fixture()
    let center = DataCenter(fixture.database)
    var note = try await center.write { database throws in
      try Note(id: "a", title: "one").insert(in: database)
      return try Note.find("a", in: database)
    }
    note?.title = "two"
    #expect(try await fixture.notes().first?.title == "one")
    let read = await failure(DatabaseError.self) {
      try await center.read { _ = try Note(id: "b").insert(in: $0) }
    }
    #expect(read?.message.contains("readonly") == true)
    // If a closure leaks the database, the leaked value no longer works.
    final class Leak: @unchecked Sendable {
      // SAFETY: only closures on the database's one thread use it.
      var database: Database?
    }
    let leak = Leak()
    try await center.write { leak.database = $0 }
    for use in [
      { _ = try $0.execute("DELETE FROM notes") }, { _ = try Note.all.delete(in: $0) },
      { _ = try Note.all.fetch($0) },
    ] as [@Sendable (Database) throws -> Void] {
      let error = await failure(DatabaseError.self) {
        try await fixture.database.write { _ in
          if let database = leak.database { try use(database) }
        }
      }
      #expect(error?.message.contains("is over") == true)
    }
    #expect(try await fixture.notes().count == 1)
  }

  @Test("interceptors run from the outer center to the table before, and in reverse after")
  func order() async throws {
    let fixture = try await Fixture()
    let journal = Journal()
    func pair(_ name: String) -> [Interceptor] {
      [
        Interceptor(.before) { action, _ in journal.add("before \(action.action) \(name)") },
        Interceptor(.after) { action, _ in journal.add("after \(action.action) \(name)") },
      ]
    }
    let center = DataCenter(
      DataCenter(fixture.database, interceptors: pair("inner")), interceptors: pair("outer"))
    let own = pair("table")
    let notes = Note.table.intercepting(own[0], own[1])
    let names = ["outer", "inner", "table"]
    func expected(_ action: String) -> [String] {
      names.map { "before \(action) \($0)" } + names.reversed().map { "after \(action) \($0)" }
    }
    try await center.write { _ = try notes.insert(Note(id: "a"), in: $0) }
    #expect(journal.take() == expected("insert"))
    try await center.write { _ = try notes.update(Note(id: "a"), in: $0) }
    #expect(journal.take() == expected("update"))
    _ = try await center.read { try notes.all.fetch($0) }
    #expect(journal.take() == expected("query"))
    _ = try await center.write { try notes.all.update(["done": true], in: $0) }
    #expect(journal.take() == expected("update"))
    try await center.write { _ = try notes.delete(key: "a", in: $0) }
    #expect(journal.take() == expected("delete"))
    try await center.write { _ = try notes.delete(key: "a", in: $0) }
    #expect(journal.take() == names.map { "before delete \($0)" })
    _ = try await center.read { try notes.count(in: $0) }
    #expect(journal.take() == names.map { "before query \($0)" })
  }

  @Test("a before-interceptor changes values, and one for another table does not run")
  func changedValues() async throws {
    let fixture = try await Fixture()
    let center = DataCenter(
      fixture.database,
      interceptors: [
        Interceptor(.before, .insert, .update, table: "NOTES") { action, _ in
          if case .text(let title)? = action.columns["title"] {
            action.columns["title"] = .text(title.uppercased())
          }
          action.columns["list"] = "inbox"
        },
        Interceptor(.before, .insert, table: "items") { _, _ in throw Refused(reason: "items") },
        Interceptor(.before, .query) { action, _ in
          action.query = action.query.where(Field("done") == false)
        },
        Interceptor(.after, .query) { action, _ in
          for index in action.rows.indices { action.rows[index]["list"] = "seen" }
        },
      ])
    let found = try await center.write { database throws in
      try Note(id: "a", title: "one", done: true).insert(in: database)
      try Note(id: "b", title: "two", done: false).insert(in: database)
      #expect(try Note.table.count(in: database) == 1)
      return try Note.all.fetch(database)
    }
    #expect(found == [Note(id: "b", title: "TWO", done: false, list: "seen")])
    #expect(try await fixture.notes().map(\.list) == ["inbox", "inbox"])
    let error = await failure(Refused.self) {
      try await center.write { _ = try Item.full.insert(in: $0) }
    }
    #expect(error == Refused(reason: "items"))
  }

  @Test("a refusal rolls the transaction back, also in an after-interceptor of a later row")
  func refusal() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a", done: false), Note(id: "b", done: false))
    let center = DataCenter(
      fixture.database,
      interceptors: [
        Interceptor(.after, .delete) { action, database in
          // It runs within the transaction, and sees the row gone.
          #expect(
            try Note.all.where(Field("id") == (action.columns["id"] ?? .null))
              .count(database) == 0)
          if action.columns["id"] == "b" { throw Refused(reason: "b stays") }
        }
      ])
    let error = await failure(Refused.self) {
      try await center.write { _ = try Note.all.delete(in: $0) }
    }
    #expect(error == Refused(reason: "b stays"))
    #expect(try await fixture.notes().map(\.id) == ["a", "b"])
  }

  @Test("interceptors that write in the same transaction keep a history, and cannot run forever")
  func history() async throws {
    let fixture = try await Fixture()
    let history = Table<RecordColumns>("history", [.integer("n").primaryKey(), .text("what")])
    let recorder = Interceptor(.after, .insert, .update, table: "notes") { action, database in
      let id = action.columns["id"] ?? .null
      try history.insert(["what": "\(action.action) \(id)"], in: database)
    }
    let notes = Note.table.intercepting(recorder)
    try await fixture.database.write { database throws in
      try notes.insert(Note(id: "a"), in: database)
      try notes.upsert(Note(id: "a", title: "x"), in: database)
      #expect(try history.count(in: database) == 2)
    }
    let endless = DataCenter(
      fixture.database,
      interceptors: [
        Interceptor(.after, .insert) { _, database in
          try history.insert(["what": "again"], in: database)
        }
      ])
    let error = await failure(RecordError.self) {
      try await endless.write { _ = try Note(id: "b").insert(in: $0) }
    }
    #expect(error?.message.contains("call each other without end") == true)
    #expect(try await fixture.notes().count == 1)
  }
}
