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
    #expect(try replica.file.unrecordedWrites.tables().isEmpty)
    try replica.reopen()
    #expect(try replica.file.unrecordedWrites.tables().isEmpty)
    try replica.checkFile()
  }

  @Test("rows that are written into the tables of the list meanwhile stay, and are sent")
  func sameTables() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run(
      "CREATE TABLE steps(id TEXT PRIMARY KEY, task TEXT REFERENCES tasks(id) ON DELETE CASCADE)")
    try replica.run("CREATE TABLE visits(task TEXT REFERENCES tasks(id) ON DELETE CASCADE)")
    try replica.file.track(["steps"])
    let other = try replica.other()
    var slices = 0
    replica.fill {
      slices += 1
      if slices > 2 { return }
      let writer = slices == 1 ? other : replica.file
      _ = try writer.write {
        try $0.execute(
          "INSERT INTO tasks(id, title) VALUES ('own\(slices)', 'x'), ('gone\(slices)', 'y')")
        try $0.execute("INSERT INTO steps VALUES ('s\(slices)', 'own\(slices)')")
        try $0.execute("INSERT INTO visits VALUES ('own\(slices)')")
        try $0.execute("DELETE FROM tasks WHERE id = 'gone\(slices)'")
      }
    }
    let steps = (0..<2).map {
      maker.change(SequenceNumber($0 + 6), "steps", Name("p\($0)"), [Column("task", "r1")])
    }
    let result = try replica.pull(tasks(5) + steps, pages: 2)
    #expect(result == AppliedPull(applied: 7, refused: 0))
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[7]])
    #expect(try replica.rows("SELECT id, task FROM steps ORDER BY 1").count == 4)
    #expect(try replica.rows("SELECT * FROM visits ORDER BY 1") == [["own1"], ["own2"]])
    let own = try replica.pending.filter { $0.kind == .insert }.map(\.key.record.text)
    #expect(own.filter { !$0.hasPrefix("gone") } == ["own1", "s1", "own2", "s2"])
    #expect(replica.file.attempts.count == 7, "the list was applied at once, too")
    #expect(try replica.leftovers().isEmpty)
    try replica.run("DELETE FROM tasks WHERE id = 'own1'")
    #expect(try replica.rows("SELECT id FROM steps WHERE task = 'own1'").isEmpty)
    try replica.checkFile()
  }

  @Test(
    "rows that are written meanwhile and clash with the list have the same result as before the pull",
    arguments: [
      "INSERT INTO tasks(id, title) VALUES ('r1', 'mine')",
      "INSERT INTO tasks(id, title) VALUES ('r1', 'mine'); DELETE FROM tasks WHERE id = 'r1'",
      "INSERT INTO tasks(id, title) VALUES ('own', 't2')",
    ])
  func clashing(_ write: String) throws {
    func run(fills: Bool) throws -> [[[Value]]] {
      let replica = try ReplicaFixture.withTasks()
      try replica.run("CREATE UNIQUE INDEX one_title ON tasks(title)")
      var isWritten = false
      func writeOnce() throws {
        if !isWritten { try replica.run(write) }
        isWritten = true
      }
      if fills { replica.fill(writeOnce) } else { try writeOnce() }
      try replica.pull(tasks(5), pages: 2)
      #expect(isWritten)
      #expect(try replica.leftovers().isEmpty)
      try replica.checkFile()
      return try ["tasks", "ferry_kept", "ferry_conflicts", "ferry_refresh"].map {
        try replica.rows("SELECT * FROM \($0) ORDER BY 1, 2")
      } + [replica.pending.map { [.text($0.kind.rawValue), .text($0.key.record.text)] }]
    }
    #expect(try run(fills: true) == run(fills: false))
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
      #expect(try file.firstList.shadows.isAny())
      let last = maker.page(Array(changes[6...]))
      #expect(try file.pullList(last.body, last.head).applied == 9)
      #expect(try file.connection.count("SELECT count(*) FROM tasks") == 9)
      #expect(try !file.firstList.shadows.isAny())
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
    #expect(try replica.file.pullList(last.body, last.head).applied == 5)
    #expect(try replica.leftovers().isEmpty)
    try replica.checkFile()
  }

  @Test("a space can be left while its list is filled in")
  func left() throws {
    struct Failure: Error {}
    let replica = try ReplicaFixture.withTasks()
    let family = try replica.join("family")
    try replica.run(
      """
      CREATE TABLE area(id TEXT PRIMARY KEY);
      CREATE TABLE item(id TEXT PRIMARY KEY, area TEXT REFERENCES area(id))
      """)
    try family.track(["area", "item"])
    var slices = 0
    replica.fill {
      slices += 1
      if slices == 4 { throw Failure() }
    }
    let changes =
      (0..<4).map { maker.change(SequenceNumber($0 + 1), "area", Name("a\($0)"), []) }
      + (0..<4).map {
        maker.change(
          SequenceNumber($0 + 5), "item", Name("i\($0)"), [Column("area", .text("a\($0)"))])
      }
    #expect(throws: Failure.self) { try replica.pull(changes, pages: 2, into: family) }
    try replica.file.spaces.leave(2, discarding: false)
    #expect(
      try replica.rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ferry_2%'") == [[0]])
    try replica.checkFile()
  }

  @Test("rows of copies that still lack their parents are no dangling rows of other lists")
  func danglingCopies() throws {
    let replica = try ReplicaFixture.withTasks()
    let family = try replica.join("family")
    try replica.run(
      """
      CREATE TABLE area(id TEXT PRIMARY KEY);
      CREATE TABLE item(id TEXT PRIMARY KEY, area TEXT REFERENCES area(id))
      """)
    try family.track(["area", "item"])
    var slices = 0
    replica.fill {
      let connection = replica.file.connection
      guard try connection.prepare("PRAGMA foreign_key_check").exists() else { return }
      slices += 1
      #expect(try connection.transaction { try DanglingRows(replica.file).all().count } == 0)
    }
    let items = (0..<4).map {
      maker.change(SequenceNumber($0 + 1), "item", Name("i\($0)"), [Column("area", "a")])
    }
    let result = try replica.pull(
      items + [maker.change(5, "area", "a", [])], pages: 2, into: family)
    #expect(result == AppliedPull(applied: 5, refused: 0))
    #expect(slices > 0)
    for copy: Name in ["ferry_first_1", "ferry_2_first_13"] { #expect(ShadowTables.isCopy(copy)) }
    for other: Name in [
      "ferry_first_", "ferry_x_first_1", "first_1", "ferry_first_1_2", "ferry_kept",
    ] {
      #expect(!ShadowTables.isCopy(other))
    }
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

  @Test("the tables of a joined space are filled in, and those with rows of several spaces are not")
  func joined() throws {
    let atOnce = try joined(fills: false)
    let filled = try joined(fills: true)
    #expect(filled.rows == atOnce.rows)
    // Four slices and a check of foreign keys.
    #expect(filled.slices == [5, 0])
  }

  private func joined(fills: Bool) throws -> (rows: [[[Value]]], slices: [Int]) {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE notes(id TEXT PRIMARY KEY, space TEXT, body TEXT);
      CREATE TABLE list(id TEXT PRIMARY KEY, a TEXT);
      CREATE TABLE item(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id));
      """)
    try replica.configure(replica.file, "private")
    let family = try replica.join("family")
    try family.track(["list", "item"])
    try replica.file.spaces.share(["notes"], by: "space")
    var (count, slices) = (0, [Int]())
    if fills { replica.fill { count += 1 } }
    func pull(_ changes: [Change], into file: ReplicaFile) throws {
      count = 0
      try replica.pull(changes, pages: 2, into: file)
      slices.append(count)
    }
    try pull(
      [
        maker.change(1, "item", "i1", [Column("list", "l1")]),
        maker.change(2, "item", "i2", [Column("list", "l1")]),
        maker.change(3, "list", "l1", [Column("a", "x")]),
        maker.change(4, "notes", "n1", [Column("body", "of the family")]),
        maker.change(5, "list", "l2", [Column("a", "y")]),
        maker.change(6, "item", "i3", [Column("list", "l2")]),
        maker.deletion(7, "item", "i3"), maker.change(8, "list", "l3", []),
      ], into: family)
    try pull(
      [
        maker.change(1, "notes", "n2", [Column("body", "mine")]),
        maker.change(2, "notes", "n1", [Column("body", "taken")]),
        maker.change(3, "list", "l9", [Column("a", "of another space")]),
      ], into: replica.file)
    try replica.run("UPDATE list SET a = 'later' WHERE id = 'l1'; DELETE FROM notes")
    let tables = ["notes", "list", "item"]
    let kept = ["kept", "refresh", "conflicts", "operations"].flatMap {
      ["ferry_\($0)", "ferry_2_\($0)"]
    }
    let rows = try (tables + kept).map { try replica.rows("SELECT * FROM \($0) ORDER BY 1, 2") }
    #expect(try replica.leftovers().isEmpty)
    try replica.checkFile()
    return (rows, slices)
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
    file.fillInSlices()
    afterSlice = body
  }

  /// Stages and applies changes as a list of pages of about the same size.
  @discardableResult
  func pull(
    _ changes: [Change], pages: Int, into space: ReplicaFile? = nil
  ) throws -> AppliedPull {
    let file = space ?? file
    let size = (changes.count + pages - 1) / pages
    var rest = changes[...]
    let head = changes.map(\.sequence).max() ?? 0
    while rest.count > size {
      let page = PageMaker().page(Array(rest.prefix(size)), head: head, more: true)
      try file.incoming.stage(page.body, page.head, changes: size)
      rest = rest.dropFirst(size)
    }
    let page = PageMaker().page(Array(rest), head: head)
    return try file.pullList(page.body, page.head, afterSlice: afterSlice)
  }

  func configure(_ file: ReplicaFile, _ name: String) throws {
    let space = try #require(SpaceName(name))
    try file.settings.configure(ServerAddress(url: "http://ferry.test", space: space), token: nil)
  }

  /// Joins a space, and returns its ledger.
  func join(_ name: String) throws -> ReplicaFile {
    let space = try #require(SpaceName(name))
    let number = try file.spaces.join(ServerAddress(url: "http://ferry.test", space: space))
    let joined = try file.spaces.file(number)
    try configure(joined, name)
    return joined
  }

  /// Returns the names of copies left in the file.
  func leftovers() throws -> [String] {
    try file.connection.rows("SELECT name FROM sqlite_schema WHERE name GLOB 'ferry_*first_*'") {
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

extension ReplicaFile {
  /// Fills each first list in slices of two changes.
  func fillInSlices() {
    (firstListOptions.changesMin, firstListOptions.sliceChanges) = (1, 2)
    firstListOptions.checkedRows = 3
  }

  /// Applies a complete list as a sync does.
  func pullList(
    _ body: [UInt8], _ head: PageHead, afterSlice: () throws -> Void = {}
  ) throws -> AppliedPull {
    if try firstList.begin(last: body, head) {
      while try firstList.fillSlice() { try afterSlice() }
    }
    return try apply(last: body, head)
  }
}
