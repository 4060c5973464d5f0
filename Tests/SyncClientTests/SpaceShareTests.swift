import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Tables whose rows belong to several spaces of a file.
@Suite("Rows of several spaces in one table", .hangLimit)
struct SpaceShareTests {
  private let fixture: ReplicaFixture
  private var file: ReplicaFile { fixture.file }

  init() throws {
    fixture = try ReplicaFixture()
    try fixture.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, list TEXT, title TEXT)")
    try configure(file, "private")
    try join("family")
    try file.spaces.share(["tasks"], by: "list")
  }

  private func configure(_ file: ReplicaFile, _ name: String) throws {
    let space = try #require(SpaceName(name))
    try file.settings.configure(ServerAddress(url: "http://ferry.test", space: space), token: nil)
  }

  private func join(_ name: String) throws {
    let space = try #require(SpaceName(name))
    let number = try file.spaces.join(ServerAddress(url: "http://ferry.test", space: space))
    try configure(file.spaces.file(number), name)
    try file.spaces.shareTables(with: number)
  }

  private func family() throws -> ReplicaFile { try file.spaces.file(2) }

  private func pending(_ file: ReplicaFile) throws -> [String] {
    try file.queue.oldest(100).map {
      "\($0.operation.kind.rawValue) \($0.operation.key.record)"
    }
  }

  private func apply(_ changes: [Change], to file: ReplicaFile) throws {
    let page = PageMaker().page(changes, head: nil, tail: nil, serverTime: 0)
    _ = try file.apply(last: page.body, page.head)
  }

  private let rows = "SELECT id, list, title FROM tasks ORDER BY id"

  @Test("each row is recorded in its space, and a row of no space in none")
  func recorded() throws {
    try fixture.run(
      """
      INSERT INTO tasks VALUES ('a', 'private', ''), ('b', 'family', ''), ('c', 'nobody', ''),
        ('d', NULL, ''), ('e', 'Family', '')
      """)
    #expect(try pending(file) == ["insert a"])
    #expect(try pending(family()) == ["insert b"])
    try fixture.run("UPDATE tasks SET title = 'x'; DELETE FROM tasks WHERE id IN ('b', 'c')")
    #expect(try pending(file) == ["insert a", "update a"])
    #expect(try pending(family()) == ["insert b", "update b", "delete b"])
  }

  @Test("a row that moves is deleted in one space and inserted in the other")
  func moved() throws {
    try fixture.run("INSERT INTO tasks VALUES ('a', 'private', 'one')")
    try fixture.run("UPDATE tasks SET list = 'family', title = 'two'")
    #expect(try pending(file) == ["insert a", "delete a"])
    #expect(try pending(family()) == ["insert a"])
    try fixture.run("UPDATE tasks SET list = 'nobody'")
    #expect(try pending(family()) == ["insert a", "delete a"])
    try fixture.run("UPDATE tasks SET id = 'b', list = 'family'")
    #expect(try pending(family()) == ["insert a", "delete a", "insert b"])
  }

  @Test("a member of one space changes no row of another")
  func apart() throws {
    try fixture.run("INSERT INTO tasks VALUES ('a', 'private', 'mine')")
    let pages = PageMaker()
    try apply(
      [
        pages.change(1, "tasks", "a", [Column("list", "family"), Column("title", "stolen")]),
        pages.change(2, "tasks", "b", [Column("list", "private"), Column("title", "planted")]),
        pages.change(3, "tasks", "c", [Column("list", "family"), Column("title", "good")]),
        pages.change(4, "tasks", "d", [Column("title", "nowhere")]),
      ], to: family())
    #expect(try fixture.rows(rows) == [["a", "private", "mine"], ["c", "family", "good"]])
    #expect(try family().waiting.oldest(9).count == 3)
    try apply(
      [
        pages.deletion(5, "tasks", "a", at: 1_900_000_000_000),
        pages.change(
          6, "tasks", "c", [Column("list", "private")], inserts: false, at: 1_900_000_000_000),
      ], to: family())
    #expect(try fixture.rows(rows) == [["a", "private", "mine"], ["c", "family", "good"]])
    #expect(try pending(file) == ["insert a"])
  }

  @Test(
    "a row whose move arrives in pieces ends in its new space, in each order",
    arguments: [true, false])
  func pieces(deletesFirst: Bool) throws {
    let pages = PageMaker()
    try apply([pages.change(1, "tasks", "a", [Column("list", "private")])], to: file)
    let delete = { try apply([pages.deletion(2, "tasks", "a", at: 1_800_000_000_001)], to: file) }
    if deletesFirst { try delete() }
    try apply([pages.change(1, "tasks", "a", [Column("list", "family")])], to: family())
    if !deletesFirst { try delete() }
    #expect(try fixture.rows("SELECT id, list FROM tasks") == [["a", "family"]])
    #expect(try family().waiting.oldest(9).isEmpty)
    #expect(try pending(file) == [] && pending(family()) == [])
  }

  @Test("a space that is joined later gets its rows, and one that is left takes only its own")
  func joinedLater() throws {
    try fixture.run("INSERT INTO tasks VALUES ('a', 'private', ''), ('w', 'work', '')")
    try join("work")
    #expect(try pending(file.spaces.file(3)) == ["insert w"])
    try file.spaces.leave(3, discarding: true)
    #expect(try fixture.rows("SELECT id FROM tasks") == [["a"]])
    #expect(try pending(file) == ["insert a"])
  }

  @Test("a scan, a batch and a replacement see the rows of one space")
  func scans() throws {
    try fixture.run(
      "INSERT INTO tasks VALUES ('a', 'private', ''), ('b', 'family', ''), ('c', 'nobody', '')")
    let scan = try TableScan("tasks", on: family().connection, limits: .standard)
    #expect(try scan.received(RecordKey(table: "tasks", record: "a")) == nil)
    let count = try file.write { try $0.batch("tasks", where: "title = ''", set: ["title": "x"]) }
    #expect(count == 2)
    #expect(
      try fixture.rows(rows) == [
        ["a", "private", "x"], ["b", "family", "x"], ["c", "nobody", ""],
      ])
    #expect(throws: ReplicaError.self) {
      try file.write { try $0.batch("tasks", where: "title = ''", set: ["list": "family"]) }
    }
  }

  private func counted(_ values: String) throws {
    try fixture.run("CREATE TABLE counted(id INTEGER PRIMARY KEY, list TEXT, title TEXT)")
    try fixture.run("INSERT INTO counted(id, list) VALUES \(values)")
    try file.spaces.share(["counted"], by: "list")
  }

  private func record(_ number: Int64) throws -> String {
    try #require(try file.rows.record(of: "counted", key: [.integer(number)])).text
  }

  private let numbers = "SELECT CAST(id AS TEXT), list FROM counted ORDER BY id"

  @Test("a row with an integer key keeps its number and its record when it moves")
  func mapped() throws {
    try counted("(1, 'private'), (2, 'family'), (3, 'nowhere')")
    let (one, two) = (try record(1), try record(2))
    try fixture.run("UPDATE counted SET list = 'family', title = 'x' WHERE id = 1")
    #expect(try pending(file) == ["insert \(one)", "delete \(one)"])
    #expect(try pending(family()) == ["insert \(two)", "insert \(one)"])
    try fixture.run("UPDATE counted SET list = 'private'")
    #expect(try pending(file).suffix(3).contains("insert \(one)"))
    #expect(try record(1) == one && record(2) == two)
    #expect(try family().rows.record(of: "counted", key: [.integer(2)])?.text == two)
    // It is another record only when the row is gone, also a row of no space.
    try fixture.run("UPDATE counted SET list = 'nowhere' WHERE id = 1")
    try fixture.run("DELETE FROM counted WHERE id = 1")
    try fixture.run("INSERT INTO counted VALUES (1, 'family', '')")
    #expect(try record(1) != one)
    try fixture.run("UPDATE counted SET id = 9, list = 'private' WHERE id = 1")
    #expect(try record(9) != record(2))
  }

  @Test("no row of one space gets the integer of another space's record")
  func numbersApart() throws {
    try counted("(1, 'private')")
    let pages = PageMaker()
    try apply([pages.change(1, "counted", "r", [Column("list", "family")])], to: family())
    #expect(try fixture.rows(numbers) == [["1", "private"], ["2", "family"]])
    try apply([pages.deletion(2, "counted", "r", at: 1_800_000_000_001)], to: family())
    try apply([pages.change(1, "counted", "s", [Column("list", "private")])], to: file)
    try apply(
      [pages.change(3, "counted", "r", [Column("list", "family")], at: 1_800_000_000_002)],
      to: family())
    #expect(
      try fixture.rows(numbers) == [["1", "private"], ["2", "family"], ["3", "private"]])
    #expect(try family().waiting.oldest(9).isEmpty)
  }

  @Test(
    "a row with an integer key whose move arrives in pieces keeps its number, in each order",
    arguments: [true, false])
  func mappedPieces(deletesFirst: Bool) throws {
    try counted("(1, 'private')")
    let pages = PageMaker()
    try apply([pages.change(1, "counted", "a", [Column("list", "private")])], to: file)
    let delete = {
      try apply([pages.deletion(2, "counted", "a", at: 1_800_000_000_001)], to: file)
    }
    if deletesFirst { try delete() }
    try apply([pages.change(1, "counted", "a", [Column("list", "family")])], to: family())
    if !deletesFirst { try delete() }
    #expect(try fixture.rows(numbers) == [["1", "private"], ["2", "family"]])
    #expect(try family().waiting.oldest(9).isEmpty)
    #expect(try file.rows.record(of: "counted", key: [.integer(2)]) == "a")
  }

  @Test("the table may be altered, its column renamed, and the key may be the column")
  func altered() throws {
    try file.write {
      try $0.renameColumn("list", of: "tasks", to: "place")
      try $0.execute("ALTER TABLE tasks ADD COLUMN due")
      try $0.renameTable("tasks", to: "jobs")
      try $0.execute("INSERT INTO jobs(id, place) VALUES ('a', 'private'), ('b', 'family')")
    }
    #expect(try pending(file) == ["insert a"])
    #expect(try pending(family()) == ["insert b"])
    #expect(
      try family().queue.oldest(9)[0].operation.columns.map(\.name).contains("list"))
    try fixture.run("CREATE TABLE lists(name TEXT PRIMARY KEY, color TEXT)")
    try file.spaces.share(["lists"], by: "name")
    try fixture.run("INSERT INTO lists VALUES ('family', 'red'), ('private', 'blue')")
    #expect(try pending(family()) == ["insert b", "insert family"])
  }

  @Test("a renamed table has its first names in a space that is joined later, too")
  func renamedBeforeJoining() throws {
    try file.write {
      try $0.renameColumn("title", of: "tasks", to: "text")
      try $0.renameColumn("list", of: "tasks", to: "place")
      try $0.renameTable("tasks", to: "jobs")
    }
    try join("work")
    let work = try file.spaces.file(3)
    try fixture.run("INSERT INTO jobs VALUES ('w', 'work', 'hello')")
    let operation = try #require(try work.queue.oldest(9).first?.operation)
    #expect(operation.key == RecordKey(table: "tasks", record: "w"))
    #expect(operation.columns.map(\.name).sorted() == ["list", "title"])
    let pages = PageMaker()
    let columns = [Column("list", "work"), Column("title", "theirs")]
    try apply([pages.change(1, "tasks", "x", columns)], to: work)
    #expect(try fixture.rows("SELECT text FROM jobs ORDER BY id") == [["hello"], ["theirs"]])
    try fixture.reopen()
    #expect(try file.spaces.file(3).tables.schema(local: "jobs").name == "tasks")
  }

  @Test("a column that is renamed before the table is tracked has its first name in each space")
  func renamedBeforeTracking() throws {
    try fixture.run("CREATE TABLE notes(id TEXT PRIMARY KEY, list TEXT, text TEXT)")
    try file.write { try $0.renameColumn("text", of: "notes", to: "body") }
    try file.spaces.share(["notes"], by: "list")
    try fixture.run("INSERT INTO notes VALUES ('a', 'family', 'x'), ('b', 'private', 'y')")
    for space in [file, try family()] {
      let columns = try #require(try space.queue.oldest(9).first).operation.columns
      #expect(columns.map(\.name).sorted() == ["list", "text"])
    }
  }

  @Test("a key that names the space may be renamed, and the rows stay in their spaces")
  func renamedKey() throws {
    try fixture.run("CREATE TABLE lists(name TEXT PRIMARY KEY, color TEXT)")
    try file.spaces.share(["lists"], by: "name")
    try file.write { try $0.renameColumn("name", of: "lists", to: "space") }
    try fixture.run("INSERT INTO lists VALUES ('family', 'red'), ('private', 'blue')")
    #expect(try pending(family()) == ["insert family"])
    #expect(try pending(file) == ["insert private"])
  }

  @Test("a table's direction holds in a space that is joined later, and changes in all")
  func directions() throws {
    try fixture.run("CREATE TABLE notes(id TEXT PRIMARY KEY, list TEXT)")
    try file.spaces.share(["notes"], by: "list", direction: .uploadOnly(automatic: true))
    try join("work")
    let work = try file.spaces.file(3)
    #expect(try work.tables.tracked.direction(of: "notes") == .uploadOnly(automatic: true))
    #expect(try work.tables.tracked.direction(of: "tasks") == .twoWay)
    try file.track(["notes"])
    for space in file.spaces.all {
      #expect(try space.tables.tracked.direction(of: "notes") == .twoWay)
    }
  }

  @Test("what cannot be shared is refused with the reason")
  func refused() throws {
    try fixture.run("CREATE TABLE whole(id TEXT PRIMARY KEY, list TEXT)")
    #expect(throws: ReplicaError.self) { try file.spaces.share(["tasks"], by: "missing") }
    #expect(throws: ReplicaError.self) { try file.spaces.share(["tasks"], by: "title") }
    try file.track(["whole"])
    #expect(throws: ReplicaError.self) { try file.spaces.share(["whole"], by: "list") }
    try file.tracking.untrack("tasks")
    try fixture.run("INSERT INTO tasks VALUES ('a', 'family', '')")
    #expect(try pending(family()) == [])
  }
}
