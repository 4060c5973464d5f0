import FerrySQLite
import Testing

/// A table changed at random by transactions, and the content after each of them: the oracle of the
/// content after a crash.
final class Ledger {
  /// The version of each row, by id.
  typealias State = [Int: Int]

  /// After each acknowledged transaction; the first is the file without the table, the second
  /// the empty table.
  private(set) var states: [State] = [[:]]
  /// The results of the transactions failed since then, and of the one under way. A commit that
  /// fails at the last write or sync may be in the file after a crash.
  private var attempted: [State] = []
  /// The last result of ``find(on:_:)``.
  private var found: State = [:]
  private let numbers: SeededNumbers

  init(_ numbers: SeededNumbers) { self.numbers = numbers }

  /// The number of the last acknowledged transaction.
  var acknowledged: Int { states.count - 1 }

  /// Runs one transaction; it throws when a fault interrupts it.
  func commit(on connection: SQLiteConnection) throws {
    var next = states[acknowledged]
    let number = acknowledged + 1
    let changes = number == 1 ? [] : (0...numbers.below(4)).map { _ in numbers.below(40) }
    for id in changes { next[id] = numbers.below(8) == 0 ? nil : number }
    attempted.append(next)
    try connection.transaction {
      if number == 1 {
        try connection.execute(
          """
          CREATE TABLE ledger(last INTEGER NOT NULL);
          INSERT INTO ledger VALUES (1);
          CREATE TABLE rows(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, content BLOB);
          CREATE INDEX versions ON rows(version, id);
          """)
      } else {
        for id in changes { try write(id, next[id], on: connection) }
        try connection.execute("UPDATE ledger SET last = \(number)")
      }
    }
    states.append(next)
    attempted = []
  }

  private func write(_ id: Int, _ version: Int?, on connection: SQLiteConnection) throws {
    guard let version else {
      return try connection.execute("DELETE FROM rows WHERE id = \(id)")
    }
    try connection.prepare("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)").run(
      id, version, content(id, version))
  }

  private func content(_ id: Int, _ version: Int) -> [UInt8] {
    [UInt8](
      repeating: UInt8(truncatingIfNeeded: id &* 7 &+ version), count: (id * 131 + version) % 2900)
  }

  /// Returns the number of the transaction whose state the file has, whole and sound; `nil` and an
  /// issue if there is none.
  func find(on connection: SQLiteConnection, _ comment: Comment? = nil) throws -> Int? {
    let check = try connection.text("PRAGMA integrity_check")
    #expect(check == "ok", comment)
    let tables = try connection.integer("SELECT count(*) FROM sqlite_schema")
    let last = tables == 0 ? 0 : try connection.integer("SELECT last FROM ledger") ?? -1
    let expected = states.indices.contains(last) ? [states[last]] : attempted
    found = [:]
    if last > 0 {
      try connection.prepare("SELECT id, version, content FROM rows").forEach { row in
        let (id, version) = (Int(row.int64(0)), Int(row.int64(1)))
        found[id] = version
        #expect(row.blob(2) == content(id, version), comment)
      }
    }
    #expect(last <= acknowledged + 1 && expected.contains(found), comment)
    return expected.contains(found) ? last : nil
  }

  /// Continues from transaction `number`, whose state the file has.
  func goOn(from number: Int) {
    if number > acknowledged { states.append(found) }
    states.removeSubrange((number + 1)...)
    attempted = []
  }
}
