import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("First lists that are filled in beside their tables", .hangLimit)
struct FilledListTests {
  private let maker = PageMaker()

  // MARK: Beside other processes

  @Test("another process writes between slices, and reads the list whole or not at all")
  func beside() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE TABLE visits(n INTEGER)")
    let other = try SQLiteConnection(path: replica.path, busyTimeout: .zero)
    var seen: [[Int64]] = []
    replica.fill {
      try other.execute(single: "INSERT INTO visits VALUES (1)")
      seen.append(try other.rows("SELECT count(*) FROM tasks") { $0.int64(0) })
    }
    let result = try replica.pull(tasks(7), pages: 3)
    #expect(result == AppliedPull(applied: 7, refused: 0))
    #expect(seen == Array(repeating: [0], count: 4))
    #expect(try other.count("SELECT count(*) FROM tasks") == 7)
    #expect(try other.count("SELECT count(*) FROM visits") == 4)
    #expect(try replica.leftovers().isEmpty)
    try replica.checkFile()
  }

  @Test("an exchange keeps triggers: later writes are recorded, also by other processes")
  func recorded() throws {
    let replica = try ReplicaFixture.withTasks()
    replica.fill()
    let other = try replica.other()
    try replica.pull(tasks(5), pages: 2)
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'r1'")
    _ = try other.write { try $0.execute("DELETE FROM tasks WHERE id = 'r2'") }
    #expect(try replica.pending.map(\.kind) == [.update, .delete])
    #expect(try replica.file.unrecordedTables().isEmpty)
    try replica.reopen()
    #expect(try replica.file.unrecordedTables().isEmpty)
    try replica.checkFile()
  }

  @Test("a row that another process writes into a table of the list stays, and is sent")
  func sameTable() throws {
    let replica = try ReplicaFixture.withTasks()
    let other = try replica.other()
    var isWritten = false
    replica.fill {
      if isWritten { return }
      isWritten = true
      _ = try other.write { try $0.execute("INSERT INTO tasks(id, title) VALUES ('own', 'x')") }
    }
    try replica.pull(tasks(5), pages: 2)
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[6]])
    #expect(try replica.pending.map(\.key.record) == ["own"])
    #expect(try replica.leftovers().isEmpty)
    try replica.checkFile()
  }

  @Test("a changed schema between two slices gives up the copies and nothing else")
  func changedSchema() throws {
    for change in [
      "ALTER TABLE tasks ADD COLUMN note TEXT", "CREATE INDEX by_title ON tasks(title)",
      "CREATE TRIGGER own AFTER INSERT ON tasks BEGIN INSERT INTO seen VALUES (NEW.id); END",
    ] {
      let replica = try ReplicaFixture.withTasks()
      try replica.run("CREATE TABLE seen(id TEXT)")
      let other = try replica.other()
      var isChanged = false
      replica.fill {
        if isChanged { return }
        isChanged = true
        _ = try other.write { try $0.execute(change) }
      }
      try replica.pull(tasks(5), pages: 2)
      #expect(try replica.rows("SELECT count(*) FROM tasks") == [[5]])
      let triggered = change.contains("TRIGGER") ? 5 : 0
      #expect(try replica.file.connection.count("SELECT count(*) FROM seen") == triggered)
      #expect(try replica.leftovers().isEmpty)
      try replica.checkFile()
    }
  }

  @Test(
    "a process that is killed between any two slices leaves the old state, and the next sync ends it"
  )
  func killed() throws {
    let replica = try ReplicaFixture.withTasks()
    let copies = try TemporaryDirectory()
    var count = 0
    replica.fill {
      count += 1
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(
          atPath: replica.path + suffix, toPath: copies.file("\(count).db\(suffix)").path)
      }
    }
    let changes = tasks(9)
    try replica.pull(changes, pages: 3)
    #expect(count == 5)
    for number in 1...count {
      let file = try ReplicaFile(
        path: copies.file("\(number).db").path, wallClock: { 1_800_000_000_000 }, random: { 7 })
      #expect(try file.connection.count("SELECT count(*) FROM tasks") == 0)
      #expect(try file.syncState().applied == 0)
      #expect(try file.shadows.isAny())
      let last = maker.page(Array(changes[6...]))
      #expect(try file.apply(last: last.body, last.head).applied == 9)
      #expect(try file.connection.count("SELECT count(*) FROM tasks") == 9)
      #expect(try !file.shadows.isAny())
      #expect(try file.connection.rows("PRAGMA integrity_check") { $0.text(0) } == ["ok"])
    }
  }

  @Test("an error between two slices keeps the staged pages, and the next attempt applies them")
  func failing() throws {
    struct Failure: Error {}
    let replica = try ReplicaFixture.withTasks()
    var fails = true
    replica.fill { if fails { throw Failure() } }
    #expect(throws: Failure.self) { try replica.pull(tasks(5), pages: 2) }
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
    #expect(try replica.file.connection.count("PRAGMA foreign_keys") == 1)
    fails = false
    let last = maker.page(Array(tasks(5)[3...]))
    #expect(try replica.file.apply(last: last.body, last.head).applied == 5)
    #expect(try replica.leftovers().isEmpty)
    try replica.checkFile()
  }

  // MARK: The same result

  @Test("a filled list has the same result as one that is applied at once", arguments: Case.all)
  func same(_ test: Case) throws {
    let atOnce = try test.run(fills: false)
    let filled = try test.run(fills: true)
    #expect(filled.state == atOnce.state)
    #expect((filled.slices > 0) == test.isFilled)
    #expect(atOnce.slices == 0)
  }

  private func tasks(_ count: Int) -> [Change] {
    (0..<count).map {
      maker.change(
        SequenceNumber($0 + 1), "tasks", Name("r\($0)"), [Column("title", .text("t\($0)"))])
    }
  }
}

extension ReplicaFixture {
  /// Fills each first list in slices of two changes.
  ///
  /// - Parameter body: runs after each slice.
  func fill(_ body: @escaping () throws -> Void = {}) {
    // SAFETY: the closure runs on the thread of the test, within its calls of the fixture.
    nonisolated(unsafe) let body = body
    file.firstListOptions.changesMin = 1
    file.firstListOptions.sliceChanges = 2
    file.firstListOptions.run = { slice in
      try slice()
      try body()
    }
  }

  /// Stages and applies changes as a list of pages of about the same size.
  @discardableResult
  func pull(_ changes: [Change], pages: Int) throws -> AppliedPull {
    let size = (changes.count + pages - 1) / pages
    var rest = changes[...]
    let head = changes.map(\.sequence).max() ?? 0
    while rest.count > size {
      let page = PageMaker().page(Array(rest.prefix(size)), head: head, more: true)
      try file.stage(page.body, page.head, changes: size)
      rest = rest.dropFirst(size)
    }
    let page = PageMaker().page(Array(rest), head: head)
    return try file.apply(last: page.body, page.head)
  }

  /// Returns the names of copies that are left in the file.
  func leftovers() throws -> [String] {
    try file.connection.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'ferry_first%'") {
      $0.text(0)
    }
  }

  /// Expects a sound file, as another connection reads it.
  func checkFile() throws {
    for connection in [file.connection, try SQLiteConnection(path: path)] {
      #expect(try connection.rows("PRAGMA integrity_check") { $0.text(0) } == ["ok"])
      #expect(try !connection.prepare("PRAGMA foreign_key_check").exists())
    }
  }
}
