import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Functions that SQL calls", .hangLimit)
struct FunctionTests {
  let connection: SQLiteConnection

  init() throws { connection = try SQLiteConnection.inMemory() }

  @Test("arguments of every type arrive unchanged")
  func arguments() throws {
    try connection.addFunction("describe", argumentCount: -1) { arguments, answer in
      let parts = (0..<arguments.count).map { index in
        switch arguments.type(index) {
        case .null: "null"
        case .integer: "int \(arguments.int64(index))"
        case .real: "real \(arguments.double(index))"
        case .text: "text \(Array(arguments.textBytes(index)))"
        case .blob: "blob \(Array(arguments.blobBytes(index)))"
        }
      }
      var text = parts.joined(separator: ", ")
      text.withUTF8 { answer.set(text: $0) }
    }
    let table = [
      "describe()": "", "describe(NULL)": "null",
      "describe(-9223372036854775808)": "int \(Int64.min)",
      "describe(0.5, 1.0)": "real 0.5, real 1.0", "describe('', x'')": "text [], blob []",
      "describe(CAST(x'610062' AS TEXT))": "text [97, 0, 98]", "describe(x'00ff')": "blob [0, 255]",
    ]
    for (sql, expected) in table { #expect(try connection.texts("SELECT \(sql)") == [expected]) }
  }

  @Test("results of every type arrive unchanged, empty ones included")
  func answers() throws {
    try connection.addFunction("answer", argumentCount: 1) { arguments, answer in
      switch arguments.int64(0) {
      case 0: answer.setNull()
      case 1: answer.set(.min)
      case 2: [0x61, 0x00, 0x62].withUnsafeBufferPointer { answer.set(text: $0) }
      case 3: answer.set(text: UnsafeBufferPointer(start: nil, count: 0))
      case 4: ([0x00, 0xFF] as [UInt8]).withUnsafeBytes { answer.set(blob: $0) }
      default: answer.set(blob: UnsafeRawBufferPointer(start: nil, count: 0))
      }
    }
    let rows = try connection.prepare(
      """
      WITH n(i) AS (VALUES (0), (1), (2), (3), (4), (5))
      SELECT typeof(answer(i)) || ' ' || coalesce(hex(answer(i)), '') FROM n
      """
    ).rows { $0.text(0) }
    #expect(
      rows == [
        "null ", "integer 2D39323233333732303336383534373735383038", "text 610062", "text ",
        "blob 00FF", "blob ",
      ])
  }

  @Test("a function can fail its statement with its own message, and the statement is undone")
  func failing() throws {
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")
    try connection.addFunction("refuse", argumentCount: 1) { arguments, answer in
      if arguments.int64(0) == 2 { answer.fail("no twos, bitte ä") } else { answer.set(0) }
    }
    let error = failure { try connection.execute("UPDATE t SET a = refuse(a)") }
    #expect(error?.message == "no twos, bitte ä")
    #expect(try connection.texts("SELECT a FROM t ORDER BY a") == ["1", "2"])
  }

  @Test("a function is known to its own connection only, by its number of arguments")
  func scope() throws {
    try connection.addFunction("one", argumentCount: 1) { _, answer in answer.set(1) }
    try connection.addFunction("one", argumentCount: 2) { _, answer in answer.set(2) }
    #expect(try connection.integer("SELECT one(0)") == 1)
    #expect(try connection.integer("SELECT one(0, 0)") == 2)
    #expect(failure { _ = try connection.prepare("SELECT one()") } != nil)
    let other = try SQLiteConnection.inMemory()
    #expect(failure { _ = try other.prepare("SELECT one(0)") }?.message.contains("one") == true)
  }

  @Test("a function is released with its replacement or its connection")
  func lifetime() throws {
    final class Held {}
    weak var first: Held?
    weak var second: Held?
    func add(_ connection: SQLiteConnection) throws -> Held {
      let held = Held()
      try connection.addFunction("f", argumentCount: 0) { [held] _, answer in
        withExtendedLifetime(held) { answer.setNull() }
      }
      return held
    }
    do {
      let short = try SQLiteConnection.inMemory()
      first = try add(short)
      #expect(first != nil)
      second = try add(short)
      #expect(first == nil)
      #expect(second != nil)
    }
    #expect(second == nil)
  }

  @Test("a trigger calls functions in the order of its statements")
  func triggers() throws {
    final class Log { var entries: [Int64] = [] }
    let log = Log()
    try connection.addFunction("note", argumentCount: 1) { arguments, answer in
      log.entries.append(arguments.int64(0))
      answer.setNull()
    }
    try connection.execute(
      """
      CREATE TABLE t(a);
      CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT note(NEW.a); SELECT note(-NEW.a); END;
      INSERT INTO t VALUES (1), (2);
      """)
    #expect(log.entries == [1, -1, 2, -2])
  }

  @Test("an interruption ends the running statement, and the connection stays usable")
  func interrupt() throws {
    var isDue = false
    try connection.addFunction("stop_at", argumentCount: 1) { arguments, answer in
      if arguments.int64(0) == 1_000 { isDue = true }
      answer.set(arguments.int64(0))
    }
    #expect(throws: CancellationError.self) {
      try connection.interrupting(when: { isDue ? CancellationError() : nil }) {
        _ = try connection.integer(
          """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
          SELECT max(stop_at(i)) FROM n
          """)
      }
    }
    #expect(try connection.integer("SELECT 1") == 1)
  }
}
