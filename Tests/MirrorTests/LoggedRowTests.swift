import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror
@testable import FerryPostgres

@Suite("Rows in PostgreSQL's log", .hangLimit)
struct LoggedRowTests {
  private static let relation = PgoutputRelation(
    id: 1, schema: "app", name: "tasks", identity: UInt8(ascii: "f"),
    columns: [
      .init(name: "id", type: 25, isKey: true), .init(name: "title", type: 25, isKey: false),
    ])

  private static func values(_ texts: String?...) -> [PgoutputValue] {
    texts.map { text in text.map { .text(Array($0.utf8)[...]) } ?? .null }
  }

  @Test("an unchanged value outside of the row is in the former row")
  func unchanged() {
    let old = Self.values("a", "long")
    let row = LoggedRow(
      .update(Self.relation, old: .row(old), new: Self.values("b") + [.unchanged]))
    #expect(row?.old == old)
    #expect(row?.new == Self.values("b", "long"))
  }

  @Test("a row without the whole former row is none")
  func incomplete() {
    let new = Self.values("a", "x")
    #expect(LoggedRow(.update(Self.relation, old: nil, new: new)) == nil)
    #expect(LoggedRow(.update(Self.relation, old: .key(new), new: new)) == nil)
    #expect(LoggedRow(.delete(Self.relation, old: .key(new))) == nil)
    #expect(LoggedRow(.insert(Self.relation, new: [.unchanged, .null])) == nil)
    #expect(LoggedRow(.truncate(Self.relation)) == nil)
    #expect(LoggedRow(.insert(Self.relation, new: new))?.old == nil)
    #expect(LoggedRow(.delete(Self.relation, old: .row(new)))?.new == nil)
  }

  @Test("a row becomes the text of a composite value, in the order of the table's columns")
  func text() {
    let row = Self.values(#"it's "one" \ two"#, nil, "", "(,)")
    func text(_ columns: [Int?]) -> String {
      String(decoding: LoggedRow.text(row, columns), as: UTF8.self)
    }
    #expect(text([0, 1, 2, 3]) == #"("it's ""one"" \\ two",,"","(,)")"#)
    // A new column is NULL, and a dropped one is left out.
    #expect(text([3, nil]) == #"("(,)",)"#)
  }

  @Test("a write counts with the names of its time, or not at all")
  func places() {
    let columns: [Name] = ["id", "title", "n"]
    func places(_ logged: [Name], _ needed: Set<Name>, comparesOrder: Bool = true) -> [Int?]? {
      LoggedRow.places(of: columns, in: logged, needed, comparesOrder: comparesOrder)
    }
    let all = Set(columns)
    #expect(places(["id", "gone", "title", "n"], all) == [0, 2, 3])
    // A new column does not travel yet.
    #expect(places(["id", "title"], ["id", "title"]) == [0, 1, nil])
    #expect(places(["id", "name", "n"], all) == nil)
    #expect(places(["id", "name", "n"], ["id", "n"]) == [0, nil, 2])
    // Two columns had each other's name.
    #expect(places(["id", "n", "title"], all) == nil)
    // One of them does not travel.
    #expect(places(["id", "n", "title"], ["id", "title"]) == nil)
    #expect(places(["id", "n"], ["id", "n"]) == [0, nil, 1])
    // The order of a partition's columns is another one.
    #expect(places(["n", "title", "id"], all, comparesOrder: false) == [2, 1, 0])
    // A column of the mirror has another name now.
    #expect(places(["id", "title", "n"], all.union(["name"])) == nil)
  }

  @Test("marks of the mirror are read, and those of others are not")
  func marks() {
    func mark(_ text: String) -> LogMark? { LogMark(Array(text.utf8), secret: "s") }
    #expect(mark("s\nopen\nf") == .open(table: "f"))
    #expect(mark("s\nclose") == .close)
    #expect(mark("s\nbeat") == .beat && mark("s\nstore") == .store)
    #expect(
      mark("s\ngone\nf\n[[\"a\\nb\"]]")
        == .forget(table: "f", .all, keys: "[[\"a\\nb\"]]"))
    #expect(mark("s\nover\nf\n[]") == .forget(table: "f", .overwritten, keys: "[]"))
    #expect(mark("s\nmade\nf\n[]") == .forget(table: "f", .updates, keys: "[]"))
    for text in ["", "s", "t\nclose", "s\nclose\n", "s\nopen", "s\nother", "\nclose", "s\ngone\nf"]
    {
      #expect(mark(text) == nil, "\(text)")
    }
    #expect(LogMark([0xFF], secret: "s") == nil)
  }

  @Test("the log has the lower half of a transaction's identifier")
  func identifiers() {
    #expect(LogWriter.whole(700, near: 705) == "700")
    #expect(LogWriter.whole(709, near: 705) == "709")
    #expect(LogWriter.whole(9, near: 1 << 32 | 5) == "\(1 << 32 | 9)")
    #expect(LogWriter.whole(2, near: 0xFFFF_FFFE) == "\(1 << 32 | 2)")
    #expect(LogWriter.whole(3, near: 1 << 32 | 5) == "\(1 << 32 | 3)")
    #expect(LogWriter.whole(0xFFFF_FFF0, near: 1 << 32 | 5) == "\(0xFFFF_FFF0)")
    #expect(LogWriter.whole(0xFFFF_FFF0, near: 3 << 32 | 5) == "\(2 << 32 | 0xFFFF_FFF0)")
  }

  @Test("the log is read only with the necessary settings and rights")
  func suitability() {
    let suitable = LogSuitability(
      version: 150_000, level: "logical", mayReplicate: true, mayPublish: true)
    #expect(suitable.obstacle == nil && suitable.shortage == nil)
    func obstacle(_ change: (inout LogSuitability) -> Void) -> String {
      var other = suitable
      change(&other)
      return other.obstacle ?? ""
    }
    #expect(obstacle { $0.version = 130_000 }.contains("PostgreSQL before 14"))
    #expect(obstacle { $0.level = "replica" }.contains("wal_level is replica"))
    #expect(obstacle { $0.mayReplicate = false }.contains("REPLICATION"))
    #expect(obstacle { $0.mayPublish = false }.contains("CREATE"))
    #expect(obstacle { $0.foreign = ["tasks"] }.contains("table tasks"))
    #expect(obstacle { $0.computed = ["tasks"] }.contains("a condition and computed columns"))
    let refused = obstacle { ($0.computed, $0.version) = (["tasks"], 180_000) }
    #expect(refused.contains("would refuse the programs' updates"))
    #expect(obstacle { $0.listed = ["tasks"] }.contains("a list of columns"))
    var other = suitable
    other.hasSender = false
    #expect(other.shortage?.contains("max_wal_senders") == true)
    other.hasSlot = false
    #expect(other.shortage?.contains("max_replication_slots") == true)
  }
}
