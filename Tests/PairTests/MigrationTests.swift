import Ferry
import FerryNetworking
import FerrySQLite
import FerrySyncClient
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// Schema changes that bypass the triggers: the changed rows reach the others, and nothing is lost.
@Suite(.hangLimit)
struct MigrationTests {
  static let schema = "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER)"

  /// Creates the table again as other tools do, and changes values on the way.
  static let rebuilt = """
    CREATE TABLE next(id TEXT PRIMARY KEY, body TEXT, n INTEGER);
    INSERT INTO next SELECT id, upper(body), n FROM notes;
    DROP TABLE notes;
    ALTER TABLE next RENAME TO notes;
    """

  func settle(_ devices: Device...) async throws {
    for _ in 0..<3 { for device in devices { try await device.exchange() } }
    try await expectEqual(devices)
    for device in devices {
      let report = try await device.open().verify()
      #expect(report.isEqual, "\(report.differences)")
    }
  }

  func make(_ rows: String = "('a', 'one', 1), ('b', 'two', 2)") async throws -> Pair {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES \(rows)")
    try await pair.one.exchange()
    try await pair.two.exchange()
    return pair
  }

  @Test("a renamed column keeps its values, on devices that rename it and on new ones")
  func renamed() async throws {
    let pair = try await make()
    let rename = "ALTER TABLE notes RENAME COLUMN body TO text"
    try await pair.one.write(rename)
    try await pair.one.exchange()
    try await pair.one.write("UPDATE notes SET text = 'later' WHERE id = 'a'")
    try await pair.one.exchange()
    try await pair.two.write(rename)
    try await settle(pair.two, pair.one)
    #expect(try await pair.two.value("SELECT text FROM notes WHERE id = 'a'") == "later")
    let new = try await Device.joined(
      pair.server.url, schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, text TEXT, n INTEGER)")
    try await settle(new, pair.one, pair.two)
    #expect(try await new.value("SELECT text FROM notes WHERE id = 'b'") == "two")
  }

  @Test("a table that was created again is still synced", arguments: [true, false])
  func rebuilt(byAnotherProgram isForeign: Bool) async throws {
    let pair = try await make()
    if isForeign {
      try pair.one.edit(Self.rebuilt + "UPDATE notes SET n = 9 WHERE id = 'b'")
    } else {
      try await pair.one.write(Self.rebuilt)
    }
    let report = try await pair.one.exchange()
    #expect(report.pushed == 2)
    try await settle(pair.two, pair.one)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "ONE")
    let n = try await pair.two.rows("SELECT n FROM notes WHERE id = 'b'")
    #expect(n == [[.integer(isForeign ? 9 : 2)]])
    try await pair.one.write("UPDATE notes SET body = 'three' WHERE id = 'b'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'b'") == "three")
  }

  @Test("a row that another program inserted is sent, even if it is edited before the next sync")
  func editedSoon() async throws {
    let pair = try await make()
    try pair.one.edit(Self.rebuilt + "INSERT INTO notes VALUES ('c', 'three', 3)")
    try await pair.one.write("UPDATE notes SET n = 33 WHERE id = 'c'")
    try await settle(pair.one, pair.two)
    #expect(
      try await pair.two.rows("SELECT body, n FROM notes WHERE id = 'c'") == [["three", 33]])
  }

  @Test("a concurrent remote write wins over a rebuilt row")
  func rebuiltMeanwhile() async throws {
    let pair = try await make()
    try await pair.two.write("UPDATE notes SET body = 'theirs' WHERE id = 'a'")
    try pair.one.edit(Self.rebuilt)
    _ = try await pair.one.status()
    try await pair.two.exchange()
    try await settle(pair.one, pair.two)
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'a'") == "theirs")
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'b'") == "TWO")
  }

  @Test("columns are recorded under their new names after another program swaps the names")
  func exchanged() async throws {
    let pair = try await make("('a', 'one', 'ONE'), ('b', 'two', 'TWO')")
    try pair.one.edit(
      """
      ALTER TABLE notes RENAME COLUMN body TO other; ALTER TABLE notes RENAME COLUMN n TO body;
      ALTER TABLE notes RENAME COLUMN other TO n
      """)
    try await pair.one.write("UPDATE notes SET n = 'new' WHERE id = 'b'")
    for _ in 0..<2 { for device in [pair.one, pair.two] { try await device.exchange() } }
    let query = "SELECT id, body, n FROM notes ORDER BY id"
    #expect(try await pair.two.rows(query) == [["a", "ONE", "one"], ["b", "TWO", "new"]])
    #expect(try await pair.one.rows(query) == [["a", "ONE", "one"], ["b", "TWO", "new"]])
    #expect(try await pair.one.open().verify().isEqual)
  }

  @Test("a column that is dropped and added again gets its values back")
  func columnReplaced() async throws {
    let pair = try await make()
    try await pair.one.write("ALTER TABLE notes DROP COLUMN body")
    try await pair.one.exchange()
    #expect(try await pair.one.open().verify().isEqual, "a column less is no difference")
    try await pair.one.write("ALTER TABLE notes ADD COLUMN body TEXT")
    try await pair.one.exchange()
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'b'") == "two")
    #expect(try await pair.one.open().verify().isEqual)
  }

  @Test("a row that the user edits while its table is compared gets its values back")
  func editedMeanwhile() async throws {
    let pair = try await make()
    try await pair.one.write("ALTER TABLE notes DROP COLUMN body")
    try await pair.one.write("ALTER TABLE notes ADD COLUMN body TEXT")
    let path = pair.one.path
    let requests = Mutex(0)
    let transport = WatchedTransport { request in
      guard request.url.contains("digests") else { return }
      let number = requests.withLock {
        $0 += 1
        return $0
      }
      // The rows were read, and differ from the server's.
      guard number == 2 else { return }
      let user = try await Replica.open(path)
      try await user.write { _ = try $0.execute("UPDATE notes SET n = 3 WHERE id = 'b'") }
    }
    let replica = try await Replica.open(path, transport: transport, in: .system)
    _ = try await replica.sync()
    #expect(requests.withLock { $0 } > 2)
    try await pair.two.exchange()
    for device in [pair.one, pair.two] {
      let rows = try await device.rows("SELECT id, body, n FROM notes ORDER BY id")
      #expect(rows == [["a", "one", 1], ["b", "two", 3]])
    }
    #expect(try await replica.verify().isEqual)
  }

  @Test("a dropped table is created from its former columns, and gets its rows back")
  func createdFromColumns() async throws {
    let pair = try await make()
    try await pair.one.write("DROP TABLE notes")
    try await pair.one.ferry("sync", exits: 4)
    try await pair.one.ferry("track", "notes", "--create")
    try await pair.one.exchange()
    let rows = try await pair.one.rows("SELECT id, body, n FROM notes ORDER BY id")
    #expect(rows == [["a", "one", 1], ["b", "two", 2]])
    #expect(try await pair.one.open().verify().isEqual)
  }

  @Test("a table that is dropped and created again gets its rows back", arguments: [true, false])
  func emptied(atOnce isAtOnce: Bool) async throws {
    let pair = try await make()
    try await pair.one.write("DROP TABLE notes" + (isAtOnce ? "; " + Self.schema : ""))
    if !isAtOnce {
      let found = try await pair.one.ferry("sync", exits: 4)
      #expect(found.error.contains("table notes is not synced"))
      #expect(found.error.contains("ferry untrack notes"))
      try await pair.one.write(Self.schema)
      try await pair.one.ferry("track", "notes")
    }
    try await settle(pair.one, pair.two)
    #expect(try await pair.one.rows("SELECT * FROM notes").count == 2)
  }

  @Test("a table that was untracked for a time gets its rows back, and its new ones are sent")
  func untracked() async throws {
    let pair = try await make("('a', 'one', 1), ('b', 'two', 2), ('c', 'three', 3)")
    try await pair.one.ferry("untrack", "notes")
    try await pair.one.write(
      """
      DELETE FROM notes WHERE id = 'a'; UPDATE notes SET body = 'mine' WHERE id IN ('b', 'c');
      INSERT INTO notes VALUES ('d', 'new', 4)
      """)
    try await pair.two.write("UPDATE notes SET body = 'theirs' WHERE id = 'c'")
    try await pair.two.exchange()
    try await pair.one.exchange()
    try await pair.one.ferry("track", "notes")
    try await settle(pair.one, pair.two)
    let rows = try await pair.two.rows("SELECT id, body FROM notes ORDER BY id")
    #expect(
      rows == [["a", "one"], ["b", "mine"], ["c", "theirs"], ["d", "new"]])
    let kept = try await pair.one.open().conflicts().map(\.conflict.lost)
    #expect(kept == ["mine"], "what theirs replaced can be read")
  }

  @Test("a repair keeps values that only this device has, and the user can choose them again")
  func repaired() async throws {
    let pair = try await make()
    let connection = try SQLiteConnection(path: pair.one.path)
    let triggers = try connection.prepare(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    ).rows { ($0.text(0), $0.text(1)) }
    try connection.transaction {
      for (name, _) in triggers { try connection.execute("DROP TRIGGER \"\(name)\"") }
      try connection.execute(
        "UPDATE notes SET body = 'only here' WHERE id = 'a'; INSERT INTO notes VALUES ('x', 'y', 1)"
      )
      for (_, sql) in triggers { try connection.execute(sql) }
    }
    try await pair.one.ferry("verify", "--repair")
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'a'") == "one")
    let kept = try await pair.one.open().conflicts()
    #expect(Set(kept.map(\.conflict.lost)) == ["only here", "y", 1, .null])
    let number = try #require(kept.first { $0.conflict.lost == "only here" }).number
    try await pair.one.ferry("resolve", "\(number)", "--keep", "local")
    let row = try #require(kept.first { $0.conflict.column == nil }).number
    try await pair.one.ferry("resolve", "\(row)", "--keep", "local")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "only here")
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'x'") == "y")
  }

  @Test("values that others replaced before the comparison are kept as conflicts")
  func replacedBefore() async throws {
    let pair = try await make("('a', 'one', 1), ('b', 'two', 2), ('c', 'three', 3)")
    try await pair.two.write(
      "UPDATE notes SET body = 'theirs' WHERE id = 'a'; DELETE FROM notes WHERE id = 'b'")
    try await pair.two.exchange()
    try pair.one.edit(Self.rebuilt)
    try await settle(pair.one, pair.two)
    let query = "SELECT id, body FROM notes ORDER BY id"
    #expect(try await pair.one.rows(query) == [["a", "theirs"], ["c", "THREE"]])
    let kept = try await pair.one.open().conflicts()
    #expect(
      Set(kept.map { "\($0.key.record) \($0.conflict.lost)" }).isSuperset(of: [
        "a \(Value.text("ONE"))", "b \(Value.text("TWO"))",
      ]), "\(kept)")
  }

  @Test("an unsent row keeps the value of a column that is renamed before it is sent")
  func renamedUnsent() async throws {
    let pair = try await make()
    try await pair.one.write("INSERT INTO notes VALUES ('c', 'three', 3)")
    for device in [pair.one, pair.two] {
      try await device.write("ALTER TABLE notes RENAME COLUMN body TO text")
    }
    try await settle(pair.one, pair.two)
    for device in [pair.one, pair.two] {
      #expect(try await device.value("SELECT text FROM notes WHERE id = 'c'") == "three")
    }
  }

  @Test("an unsent edit of a column that another device renamed is kept as a conflict")
  func renamedWithEdit() async throws {
    let pair = try await make()
    let rename = "ALTER TABLE notes RENAME COLUMN body TO text"
    try await pair.two.write("UPDATE notes SET body = 'mine' WHERE id = 'a'")
    try await pair.one.write(rename)
    try await pair.one.exchange()
    try await pair.two.exchange()
    try await pair.two.write(rename)
    try await settle(pair.two, pair.one)
    #expect(try await pair.two.value("SELECT text FROM notes WHERE id = 'a'") == "one")
    #expect(try await pair.two.open().conflicts().map(\.conflict.lost) == ["mine"])
  }

  @Test("a table that others edit is not re-uploaded after a time as upload-only")
  func directions() async throws {
    let pair = try await make()
    try await pair.one.ferry("untrack", "notes")
    try await pair.two.write("UPDATE notes SET body = 'theirs' WHERE id = 'a'")
    try await pair.two.write("DELETE FROM notes WHERE id = 'b'")
    try await pair.two.exchange()
    try await pair.one.ferry("track", "notes", "--upload-only")
    for device in [pair.one, pair.two] { try await device.exchange() }
    let query = "SELECT id, body FROM notes"
    #expect(try await pair.two.rows(query) == [["a", "theirs"]])
    try await pair.one.ferry("untrack", "notes")
    try await pair.one.ferry("track", "notes")
    try await settle(pair.one, pair.two)
    #expect(try await pair.one.rows(query) == [["a", "theirs"]])
  }

  @Test("rows of a rebuilt upload-only table are sent")
  func rebuiltUploads() async throws {
    let pair = try await Pair.make()
    try await pair.one.ferry("track", "notes", "--upload-only")
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    try await pair.one.exchange()
    try pair.one.edit(Self.rebuilt + "INSERT INTO notes VALUES ('c', 'three', 3)")
    try await pair.one.exchange()
    try await pair.two.exchange()
    #expect(
      try await pair.two.rows("SELECT id, body FROM notes ORDER BY id")
        == [["a", "ONE"], ["c", "three"]])
  }

  @Test("a table that was created again is noticed, even if its triggers were restored")
  func triggersPutBack() async throws {
    let pair = try await make()
    let connection = try SQLiteConnection(path: pair.one.path)
    let triggers = try connection.prepare(
      "SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    ).rows { $0.text(0) }
    try connection.transaction {
      try connection.execute(Self.rebuilt)
      for sql in triggers { try connection.execute(sql) }
    }
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "ONE")
  }
}

/// Calls the owner before each request.
private struct WatchedTransport: Transport {
  let base = CurlTransport()
  let watch: @Sendable (TransportRequest) async throws -> Void

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    do { try await watch(request) } catch { throw TransportError(.other, "\(error)") }
    return try await base.send(request)
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    try await base.stream(request)
  }
}

extension Device {
  /// Changes the file like a program that does not know Ferry.
  func edit(_ sql: String) throws {
    let connection = try SQLiteConnection(path: path)
    try connection.transaction { try connection.execute(sql) }
  }
}
