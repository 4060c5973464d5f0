import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The contract of a ledger: what programs write reaches the space once, in whole transactions, and the space's
/// rules decide. A device keeps it in SQLite, and a mirror for the tables of PostgreSQL.
@Suite("Ledger contracts", .hangLimit)
struct LedgerContractTests {
  @Test("a transaction that is rolled back sends nothing", arguments: LedgerKind.allCases)
  func rolledBack(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind)
    try await stage.writeInVain("INSERT INTO notes(id) VALUES ('a'), ('b')")
    try await stage.write("INSERT INTO notes(id) VALUES ('c')")
    try await stage.expectSettled([["c", nil, nil, nil]], operations: 1)
  }

  @Test(
    "a transaction arrives whole, with one operation for each row", arguments: LedgerKind.allCases)
  func transaction(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind)
    try await stage.write(
      """
      INSERT INTO lists VALUES ('l', 'home');
      INSERT INTO notes(id, n, list) VALUES ('a', 1, 'l'), ('b', 2, 'l');
      UPDATE notes SET n = n + 10, body = 'x';
      DELETE FROM notes WHERE id = 'b'
      """)
    try await stage.expectSettled([["l", "home"], ["a", "x", "11", "l"]], operations: 2)
  }

  @Test(
    "writes to one row before an exchange travel as one operation", arguments: LedgerKind.allCases)
  func joined(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind, rows: "INSERT INTO notes(id, n) VALUES ('a', 1)")
    for body in ["one", "two", "three"] {
      try await stage.write("UPDATE notes SET body = '\(body)', n = n + 1")
    }
    try await stage.expectSettled([["a", "three", "4", nil]], operations: 1)
  }

  @Test("a row that comes and goes before an exchange is not sent", arguments: LedgerKind.allCases)
  func inVain(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind)
    try await stage.write("INSERT INTO notes(id) VALUES ('a')")
    try await stage.write("DELETE FROM notes")
    try await stage.expectSettled([], operations: 0)
  }

  @Test("rows from the space are not sent back", arguments: LedgerKind.allCases)
  func noEcho(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind)
    try await stage.other.write(
      """
      INSERT INTO lists VALUES ('l', 'home');
      INSERT INTO notes VALUES ('a', 'x', 1, 'l'), ('b', 'y', 2, 'l')
      """)
    try await stage.other.exchange()
    try await stage.expectSettled(operations: 3)
    try await stage.other.write("DELETE FROM lists")
    try await stage.other.exchange()
    try await stage.expectSettled([], operations: 6)
  }

  @Test("edits of two columns of a row are both kept", arguments: LedgerKind.allCases)
  func columns(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind, rows: "INSERT INTO notes(id) VALUES ('a')")
    try await stage.write("UPDATE notes SET body = 'here'")
    try await stage.other.write("UPDATE notes SET n = 7")
    try await stage.other.exchange()
    try await stage.expectSettled([["a", "here", "7", nil]], operations: 2)
    #expect(try await stage.lost() == [])
  }

  @Test(
    "the later write wins, whichever is exchanged first, and the other value is kept",
    arguments: LedgerKind.allCases, [true, false])
  func later(_ kind: LedgerKind, isHereFirst: Bool) async throws {
    let stage = try await LedgerStage.make(kind, rows: "INSERT INTO notes(id) VALUES ('a')")
    if isHereFirst {
      try await stage.write("UPDATE notes SET body = 'here'")
      try stage.moveCapturedBack()
      try await stage.other.write("UPDATE notes SET body = 'there'")
    } else {
      try await stage.other.write("UPDATE notes SET body = 'there'")
      try await stage.write("UPDATE notes SET body = 'here'")
    }
    try await stage.other.exchange()
    try await stage.expectSettled([["a", isHereFirst ? "there" : "here", nil, nil]], operations: 2)
    if isHereFirst { #expect(try await stage.lost() == ["here"]) }
  }

  @Test(
    "an edit of a row that the space has deleted follows the table's rule",
    arguments: LedgerKind.allCases, [DeletePolicy.deleteWins, .editWins])
  func deleted(_ kind: LedgerKind, _ rule: DeletePolicy) async throws {
    let stage = try await LedgerStage.make(
      kind, rows: "INSERT INTO notes(id, n) VALUES ('a', 1), ('b', 2)"
    ) { $0.tables["notes"]?.deletes = rule }
    try await stage.write("UPDATE notes SET body = 'here' WHERE id = 'a'")
    try await stage.other.write("DELETE FROM notes")
    try await stage.other.exchange()
    let rows: [[String?]] = rule == .editWins ? [["a", "here", "1", nil]] : []
    try await stage.expectSettled(rows, operations: 3)
  }

  @Test("the rule of a column decides about concurrent values", arguments: LedgerKind.allCases)
  func rules(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(
      kind, rows: "INSERT INTO notes(id, n, body) VALUES ('a', 10, 'one\ntwo\nthree')"
    ) { schema in
      schema.tables["notes"]?.columns["n"] = ColumnRules(policy: .counter)
      schema.tables["notes"]?.columns["body"] = ColumnRules(policy: .textMerge)
    }
    try await stage.write("UPDATE notes SET n = n + 1, body = 'ONE\ntwo\nthree'")
    try await stage.write("UPDATE notes SET n = n + 1")
    try await stage.other.write("UPDATE notes SET n = n - 5, body = 'one\ntwo\nTHREE'")
    try await stage.other.exchange()
    try await stage.expectSettled([["a", "ONE\ntwo\nTHREE", "7", nil]], operations: 3)
  }

  @Test(
    "a write that the space rejects leaves a device and stays in a program's tables; all others arrive",
    arguments: LedgerKind.allCases)
  func rejected(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind, rows: "INSERT INTO notes(id) VALUES ('a')") {
      $0.tables["notes"]?.unique = [["body"]]
    }
    try await stage.write("INSERT INTO notes(id, body) VALUES ('b', 'taken')")
    try await stage.write("INSERT INTO notes(id, body) VALUES ('c', 'free')")
    try await stage.other.write("UPDATE notes SET body = 'taken'")
    try await stage.other.exchange()
    let rows: [[String?]] = [["a", "taken", nil, nil], ["c", "free", nil, nil]]
    guard kind == .mirror else { return try await stage.expectSettled(rows, operations: 2) }
    try await stage.exchange()
    try await stage.other.exchange()
    #expect(try await stage.rows() == [rows[0], ["b", "taken", nil, nil], rows[1]])
    let query = "SELECT id, body FROM notes ORDER BY id"
    #expect(try await stage.other.rows(query) == [["a", "taken"], ["c", "free"]])
  }

  @Test("a row that gets another key moves with its children", arguments: LedgerKind.allCases)
  func otherKey(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(
      kind,
      rows: "INSERT INTO lists VALUES ('l', 'home'); INSERT INTO notes VALUES ('a', 'x', 1, 'l')")
    try await stage.write(
      """
      INSERT INTO lists VALUES ('m', 'home'); UPDATE notes SET list = 'm', id = 'b';
      DELETE FROM lists WHERE id = 'l'
      """)
    try await stage.expectSettled([["m", "home"], ["b", "x", "1", "m"]], operations: 4)
  }

  @Test("a lost answer repeats nothing", arguments: LedgerKind.allCases)
  func lostAnswer(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind)
    try await stage.write("INSERT INTO notes(id) VALUES ('a'), ('b')")
    try await stage.write("INSERT INTO notes(id) VALUES ('c')")
    let trap = stage.proxy.trap(.answer, of: "POST ", .cut)
    try await stage.exchange()
    try await trap.sprung()
    try await stage.expectSettled(operations: 3)
    #expect(try await stage.rows().count == 3)
  }

  @Test(
    "an exchange that is killed at some steps loses and repeats nothing",
    arguments: LedgerKind.allCases)
  func killed(_ kind: LedgerKind) async throws {
    let stage = try await LedgerStage.make(kind, rows: "INSERT INTO notes(id, n) VALUES ('a', 0)") {
      $0.tables["notes"]?.columns["n"] = ColumnRules(policy: .counter)
    }
    let killer = try await StepKiller()
    let (program, arguments) = try stage.exchangeCommand
    let steps = [2, 5, 9, 14, 20, 27, 35, 44, 54, 65]
    var kills = 0
    for step in steps {
      try await stage.write("UPDATE notes SET n = n + 1; INSERT INTO lists(id) VALUES ('\(step)')")
      try await stage.other.write("UPDATE notes SET n = n + 1")
      _ = try await stage.other.open().sync()
      let finished = try await killer.run(program, arguments, killedAt: step)
      if case .killed = finished.status { kills += 1 }
    }
    try #require(kills > 5)
    try await stage.expectSettled(operations: 3 * Int64(steps.count))
    #expect(
      try await stage.other.value("SELECT n FROM notes") == .integer(2 * Int64(steps.count)))
    #expect(try await stage.other.count("lists") == Int64(steps.count))
  }
}
