import FerryLaboratory
import FerryPersistence
import FerryTestSupport
import Foundation
import Testing

@Suite("Local databases", .hangLimit)
struct LocalDatabaseTests {
  @Test("a new file is its owner's alone, has a write-ahead log and checks foreign keys")
  func settings() async throws {
    let fixture = try await Fixture()
    let mode = try FileManager.default.attributesOfItem(atPath: fixture.path)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    let database = fixture.database
    #expect(try await database.write { try $0.query("PRAGMA journal_mode")[0].values } == ["wal"])
    #expect(try await database.write { try $0.query("PRAGMA foreign_keys")[0].values } == [1])
  }

  @Test("a write that throws leaves nothing behind")
  func rollback() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a"))
    await #expect(throws: CancellationError.self) {
      try await fixture.database.write { database throws in
        try Note(id: "b").insert(in: database)
        throw CancellationError()
      }
    }
    #expect(try await fixture.notes().map(\.id) == ["a"])
  }

  @Test("a reader sees one snapshot beside a write")
  func snapshot() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a"))
    let (entered, enter) = AsyncStream.makeStream(of: Void.self)
    let written = DispatchSemaphore(value: 0)
    let read = Task {
      try await fixture.database.read { database throws in
        let before = try Note.table.count(in: database)
        enter.yield()
        written.wait()
        return (before, try Note.table.count(in: database))
      }
    }
    var entries = entered.makeAsyncIterator()
    await entries.next()
    try await fixture.insert(Note(id: "b"))
    written.signal()
    #expect(try await read.value == (1, 1))
    #expect(try await fixture.notes().count == 2)
  }

  @Test("a closed database rejects calls and removes its log")
  func close() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a"))
    #expect(try await fixture.notes().count == 1)
    await fixture.database.close()
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "-wal"))
    let write = await failure(DatabaseError.self) { try await fixture.insert(Note(id: "b")) }
    let read = await failure(DatabaseError.self) { _ = try await fixture.notes() }
    #expect(write?.message == "\(fixture.path) is closed")
    #expect(read == write)
  }

  @Test("live queries end when the file is closed, and later ones fail")
  func closeUnderQuery() async throws {
    let fixture = try await Fixture()
    var counts = fixture.database.observe { try Note.table.count(in: $0) }.makeAsyncIterator()
    #expect(try await counts.next() == 0)
    await fixture.database.close()
    #expect(try await counts.next() == nil)
    let late = await failure(DatabaseError.self) {
      for try await _ in fixture.database.observe({ try Note.table.count(in: $0) }) {}
    }
    #expect(late?.message == "\(fixture.path) is closed")
  }

  @Test("a file that is not a database is rejected with its path, and stays as it is")
  func notADatabase() async throws {
    let folder = try TemporaryDirectory(prefix: "ferry-records")
    let file = folder.file("photo.jpg")
    let content = Data(repeating: 7, count: 4_096)
    try content.write(to: file)
    let error = await failure(DatabaseError.self) { _ = try await LocalDatabase.open(file.path) }
    #expect(error?.message == "\(file.path): file is not a database")
    #expect(try Data(contentsOf: file) == content)
  }

  @Test("databases in memory are apart, and read, write and observe as files do")
  func memory() async throws {
    let database = try await LocalDatabase.open(":memory:")
    let other = try await LocalDatabase.open(":memory:")
    try await database.write { try Note(id: "a").insert(in: $0) }
    let notes = database.observe { try Note.all.fetch($0) }
    var ids = notes.makeAsyncIterator()
    #expect(try await ids.next()?.map(\.id) == ["a"])
    try await database.write { try Note(id: "b").insert(in: $0) }
    #expect(try await ids.next()?.map(\.id) == ["a", "b"])
    #expect(try await other.read { try Note.all.count($0) } == 0)
    await #expect(throws: CancellationError.self) {
      try await database.write { database throws in
        try Note(id: "c").insert(in: database)
        throw CancellationError()
      }
    }
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await database.read { try Note.all.count($0) } } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(counts == [2])
    await database.close()
    #expect(try await ids.next() == nil)
    let error = await failure(DatabaseError.self) {
      _ = try await database.read { try Note.all.count($0) }
    }
    #expect(error?.message == ":memory: is closed")
    await other.close()
  }

  @Test("a read cannot write, also in memory", arguments: [false, true])
  func readOnly(inMemory: Bool) async throws {
    let fixture = try await Fixture()
    let database = try await LocalDatabase.open(inMemory ? ":memory:" : fixture.path)
    try await database.write { try Note(id: "a").insert(in: $0) }
    let writes: [@Sendable (Database) throws -> Void] = [
      { try $0.execute("DELETE FROM notes") },
      { _ = try Note.all.delete(in: $0) },
      { try Note(id: "b").insert(in: $0) },
      { _ = try $0.query("UPDATE notes SET title = 'x' RETURNING id") },
      { try $0.execute("CREATE TABLE other(x)") },
    ]
    for write in writes {
      let error = await failure(DatabaseError.self) { try await database.read(write) }
      #expect(error?.code == 8, "\(error.debugDescription)")
    }
    #expect(try await database.read { try Note.all.count($0) } == 1)
    await database.close()
  }

  @Test("a write to a tracked table of a replica's file fails and names Replica.open")
  func trackedTable() async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      try Note.table.create(in: database)
      try database.execute("CREATE TABLE plain(x)")
    }
    // The trigger of a tracked table calls a function that only a replica's connection has.
    await fixture.database.close()
    try raw(
      """
      CREATE TRIGGER ferry_capture_notes AFTER INSERT ON notes
      BEGIN SELECT ferry_insert(1); END
      """, at: fixture.path)
    let database = try await LocalDatabase.open(fixture.path)
    for write in [
      { try Note(id: "a").insert(in: $0) },
      { try $0.execute("INSERT INTO notes(id) VALUES ('a')") },
    ] as [@Sendable (Database) throws -> Void] {
      let error = await failure(DatabaseError.self) { try await database.write(write) }
      #expect(error?.message.contains("this file is a replica") == true)
      #expect(error?.message.contains("Replica.open") == true)
    }
    #expect(try await database.write { try $0.execute("INSERT INTO plain VALUES (1)") } == 1)
    #expect(try await database.read { try Note.table.count(in: $0) } == 0)
  }
}
