import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The rule for lists that are filled in beside their tables", .hangLimit)
struct FirstListTests {
  private typealias Replica = FirstList.Replica
  private typealias Table = FirstList.Table

  @Test("a list is filled in if it is large and nothing here depends on its order")
  func lists() {
    #expect(FirstList.isFillable(Replica(changes: 10), changesMin: 10))
    let others = [
      Replica(changes: 9), Replica(changes: 10, hasCursor: true),
      Replica(changes: 10, hasInterceptors: true), Replica(changes: 10, hasWaiting: true),
      Replica(changes: 10, isInMemory: true),
    ]
    for replica in others { #expect(!FirstList.isFillable(replica, changesMin: 10)) }
  }

  @Test("a table is filled in if its rows depend on nothing here but the list")
  func tables() {
    let tables: [Name: FirstList.Table] = [
      "plain": Table(), "uploads": Table(isTwoWay: false), "full": Table(isEmpty: false),
      "written": Table(hasOwnWrites: true), "unseen": Table(isUnrecorded: true),
      "mapped": Table(hasNumbers: true),
      "shared": Table(isShared: true), "watched": Table(hasUserTriggers: true),
      "replacing": Table(decidesItself: true),
    ]
    #expect(FirstList.tables(tables) == ["plain"])
    let exchangeable = tables.filter { $0.value.isExchangeable }.keys
    #expect(Set(exchangeable) == ["plain", "full", "written"])
  }

  @Test("a table is filled in only with the tables to which it refers")
  func parents() {
    let tables: [Name: FirstList.Table] = [
      "list": Table(), "task": Table(parents: ["list"]), "note": Table(parents: ["task", "note"]),
      "person": Table(isEmpty: false), "visit": Table(parents: ["person"]),
      "bill": Table(parents: ["visit", "list"]), "stray": Table(parents: ["absent"]),
    ]
    #expect(FirstList.tables(tables) == ["list", "note", "task"])
  }

  @Test("whole rows are written, deleted ones removed, and parts left with all that follows")
  func steps() {
    let maker = PageMaker()
    var rule = FirstList()
    let whole = maker.change(1, "t", "a", [Column("x", 1)])
    let part = maker.change(2, "t", "b", [Column("x", 1)], inserts: false)
    #expect(rule.step(for: whole, knowsAll: true) == .write)
    #expect(rule.step(for: maker.deletion(2, "t", "a"), knowsAll: true) == .remove)
    #expect(rule.step(for: part, knowsAll: true) == .leave)
    #expect(rule.step(for: whole, knowsAll: false) == .leave)
    let isLeft = rule.leave(part)
    #expect(isLeft)
    #expect(rule.step(for: maker.deletion(3, "t", "b"), knowsAll: true) == .leave)
    #expect(rule.step(for: maker.change(4, "t", "b", []), knowsAll: true) == .leave)
    #expect(rule.step(for: whole, knowsAll: true) == .write)
  }

  @Test("changes are left up to a number and a size")
  func limits() {
    let maker = PageMaker()
    var rule = FirstList()
    for number in 0..<FirstList.leftMax {
      let isLeft = rule.leave(maker.change(1, "t", Name("\(number)"), []))
      #expect(isLeft)
    }
    let isMore = rule.leave(maker.change(1, "t", "one more", []))
    #expect(!isMore)
    var other = FirstList()
    let large = [UInt8](repeating: 7, count: FirstList.leftBytesMax)
    let isLarge = other.leave(maker.change(1, "t", "a", [Column("x", .blob(large))]))
    #expect(!isLarge)
  }
}

@Suite("Statements of copies", .hangLimit)
struct ShadowSQLTests {
  @Test("a table's copy differs in its name and in those of its parents")
  func tables() {
    let cases: [(String, Name, String?)] = [
      ("CREATE TABLE t(a)", "t", #"CREATE TABLE "s" (a)"#),
      (#"CREATE TABLE "T t"(a)"#, "t t", #"CREATE TABLE "s" (a)"#),
      (#"CREATE TABLE "a""b"(a)"#, #"a"b"#, #"CREATE TABLE "s" (a)"#),
      ("CREATE TABLE [t](a)", "t", #"CREATE TABLE "s" (a)"#),
      ("CREATE TABLE t/* t */(a) -- t\n", "t", #"CREATE TABLE "s" /* t */(a) -- t"# + "\n"),
      (
        "CREATE TABLE t(a REFERENCES p(x), b DEFAULT 'REFERENCES q')", "t",
        #"CREATE TABLE "s" (a REFERENCES "c" (x), b DEFAULT 'REFERENCES q')"#
      ),
      (
        #"CREATE TABLE t(a references"P", FOREIGN KEY(a) REFERENCES t)"#, "t",
        #"CREATE TABLE "s" (a references "c" , FOREIGN KEY(a) REFERENCES "s" )"#
      ),
      ("CREATE TABLE t(a REFERENCES other(x))", "t", nil),
      ("CREATE TABLE other(a)", "t", nil),
      ("CREATE VIRTUAL TABLE t USING fts5(a)", "t", nil),
      ("CREATE TABLE t(a REFERENCES", "t", nil),
    ]
    for (sql, name, expected) in cases {
      let copied = ShadowSQL(sql).table(name, as: "s", parents: ["p": "c", name: "s"])
        .map { $0.replacing("  ", with: " ") }
      #expect(copied == expected?.replacing("  ", with: " "))
    }
  }

  @Test("an index' copy differs in its name and in that of its table")
  func indexes() {
    let cases: [(String, String?)] = [
      ("CREATE INDEX i ON t(a)", #"CREATE INDEX "n" ON "s" (a)"#),
      (
        #"CREATE UNIQUE INDEX "i" ON T(a COLLATE NOCASE DESC) WHERE a > 0"#,
        #"CREATE UNIQUE INDEX "n" ON "s" (a COLLATE NOCASE DESC) WHERE a > 0"#
      ),
      ("CREATE INDEX i ON other(a)", nil),
      ("CREATE TABLE t(a)", nil),
    ]
    for (sql, expected) in cases {
      let copied = ShadowSQL(sql).index(of: "t", as: "n", on: "s").map {
        $0.replacing("  ", with: " ")
      }
      #expect(copied == expected)
    }
  }
}
