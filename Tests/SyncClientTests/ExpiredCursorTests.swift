import FerryProtocol
import Testing

@testable import SyncClient

/// What a replica does that was away for longer than its server keeps history.
@Suite(.timeLimit(.minutes(1)))
struct ExpiredCursorTests {
  private let maker = PageMaker()

  @Test("of a copied file that comes back too late, nothing is sent that was confirmed long ago")
  func copied() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    _ = try replica.file.receive(replica.receipt(replica.freeze()[0], first: 1))
    #expect(try replica.pending.isEmpty)
    try replica.run("UPDATE tasks SET title = 'two' WHERE id = 'a'")
    let update = try replica.pending.map(\.id)
    let name = try replica.file.identity().device
    try replica.file.beginReplacement(Problem(.cursorExpired, "old"))
    // A copy has gone on with the chain; the insert is in the history, or was pruned from it.
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "one")])], head: 9,
      tail: OperationID(UniqueID(high: 9, low: 9)))
    let sent = try replica.freeze()
    #expect(sent.flatMap(\.operations).map(\.kind) == [.update])
    #expect(sent.flatMap(\.operations).map(\.id) == update)
    #expect(sent.map(\.dependency) == [nil])
    #expect(try replica.file.identity().device != name)
    #expect(try replica.rows("SELECT title FROM tasks") == [["two"]])
  }
}
