import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("Interceptors of pulled changes", .hangLimit)
struct PulledActionsTests {
  private let maker = PageMaker()
  private let seen = Seen()

  /// The actions seen by an interceptor.
  private final class Seen: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    func take() -> [String] {
      lines.withLock { lines in
        defer { lines = [] }
        return lines
      }
    }
  }

  private func replica(_ more: [Interceptor] = []) throws -> ReplicaFixture {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE TABLE seen(id TEXT PRIMARY KEY, title TEXT)")
    try replica.file.track(["seen"])
    replica.file.spaces.pullInterceptors =
      [
        Interceptor(.after, .insert, .update, .delete, table: "tasks") { [seen] action, _ in
          let columns = action.columns.all.map { "\($0.name)=\($0.value)" }
          seen.add("\(action.action) \(columns.joined(separator: " "))")
        }
      ] + more
    return replica
  }

  private func text(_ value: String) -> String { "\(Value.text(value))" }

  @Test("each changed row is one action after the pull, with its columns here")
  func actions() throws {
    let replica = try replica()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x")]),
      maker.change(2, "tasks", "b", [Column("title", "y"), Column("done", 1)]),
    ])
    let (zero, one) = ("\(Value.integer(0))", "\(Value.integer(1))")
    #expect(
      seen.take() == [
        "insert id=\(text("a")) title=\(text("x")) done=\(zero)",
        "insert id=\(text("b")) title=\(text("y")) done=\(one)",
      ])
    try replica.apply([
      maker.change(3, "tasks", "a", [Column("title", "z")], inserts: false),
      maker.deletion(4, "tasks", "b"), maker.deletion(5, "tasks", "never here"),
    ])
    #expect(
      seen.take() == [
        "update id=\(text("a")) title=\(text("z")) done=\(zero)", "delete id=\(text("b"))",
      ])
    // The same values change nothing, and own writes run the interceptors of the record layer alone.
    try replica.apply([maker.change(6, "tasks", "a", [Column("title", "z")], inserts: false)])
    try replica.run("INSERT INTO tasks VALUES ('own', 'x', 0)")
    #expect(seen.take().isEmpty)
  }

  @Test("writes of an interceptor are recorded, and join the pull's transaction")
  func writes() throws {
    let replica = try replica([
      Interceptor(.after, .insert, table: "tasks") { action, database in
        try database.execute(
          "INSERT INTO seen VALUES (?, ?)",
          [action.columns["id"] ?? .null, action.columns["title"] ?? .null])
      }
    ])
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])])
    #expect(try replica.rows("SELECT * FROM seen") == [["a", "x"]])
    #expect(try replica.pending.map(\.key) == [RecordKey(table: "seen", record: "a")])
    #expect(try replica.pending.map(\.kind) == [.insert])
  }

  @Test("an error of an interceptor is logged, and stops neither the pull nor later actions")
  func failure() throws {
    struct Failure: Error {}
    let replica = try replica([
      Interceptor(.after, table: "tasks") { action, _ in
        if action.columns["id"] == "a" { throw Failure() }
      }
    ])
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x")]),
      maker.change(2, "tasks", "b", [Column("title", "y")]),
    ])
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["b"]])
    #expect(seen.take().count == 1)
    let entries = try replica.file.log.newest(10).filter { $0.event == "interceptor" }
    #expect(entries.count == 1 && entries.first?.detail.contains("tasks/a") == true)
  }

  @Test("changes that waited for the table run the interceptors when they are applied")
  func deferred() throws {
    let replica = try replica()
    try replica.apply([maker.change(1, "notes", "n", [Column("body", "hello")])])
    replica.file.spaces.pullInterceptors = [
      Interceptor(.after, table: "notes") { [seen] action, _ in seen.add("\(action.action)") }
    ]
    try replica.file.track(["notes"], creatingKey: "id")
    #expect(seen.take() == ["insert"])
  }
}
