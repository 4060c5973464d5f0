import FerryConformance
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient
@testable import FerrySyncServer

/// The readers of evidence, compared with the product's own reports.
@Suite(.hangLimit)
struct EvidenceTests {
  private func action(_ action: UserAction, _ seed: UInt64) -> PlannedAction {
    PlannedAction(ordinal: 0, at: 0, device: 0, action: action, seed: seed)
  }

  @Test("a replica's rows, cursor and pending operations are read without Ferry's functions")
  func replica() throws {
    let world = try DirectWorld(seed: 3, devices: 2)
    let device = world.devices[0]
    for seed in 0..<30 {
      try world.perform(action(.addNote, UInt64(seed)), on: device)
      try world.perform(action(.editNote, UInt64(seed)), on: device)
    }
    let pending = try device.file.queue.oldest(1_000)
    var evidence = try device.evidence()
    #expect(evidence.device == (try device.file.identity().device))
    #expect(evidence.pending == pending.map(\.operation.id))
    #expect(evidence.unconfirmed == pending.count)
    #expect(evidence.applied == 0 && evidence.epoch == nil)
    let expected = try device.file.write {
      try $0.query("SELECT id, title, body, stars FROM notes ORDER BY id").map(\.values)
    }
    let notes = try #require(evidence.rows["notes"])
    #expect(notes.records.map { Value.text($0.text) } == expected.compactMap(\.first))
    #expect(notes.values == expected.flatMap { $0.dropFirst() })
    try world.sync(device)
    try world.sync(world.devices[1])
    evidence = try world.devices[1].evidence()
    #expect(evidence.rows["notes"] == notes)
    #expect(evidence.applied == (try world.final().server.head))
    #expect(evidence.epoch == world.space.epoch)
    #expect(evidence.pending.isEmpty && evidence.waiting == 0 && evidence.refused == 0)
  }

  @Test("deferred and quarantined changes are counted")
  func waiting() throws {
    let world = try DirectWorld(seed: 4, devices: 2)
    let (old, new) = (world.devices[0], world.devices[1])
    try new.upgrade()
    try new.file.write {
      _ = try $0.execute(
        """
        INSERT INTO notes(id, title, tag) VALUES ('a', 'x', 'unknown there');
        INSERT INTO lists VALUES ('l', 'refused there')
        """)
    }
    try old.file.write {
      _ = try $0.execute(
        """
        CREATE TRIGGER no_lists BEFORE INSERT ON lists
        BEGIN SELECT RAISE(ABORT, 'no lists here'); END
        """)
    }
    try world.sync(new)
    try world.sync(old)
    let evidence = try old.evidence()
    #expect(evidence.waiting == 1)
    #expect(evidence.refused == 1)
    #expect(evidence.rows["notes"]?["a", "title"] == "x")
  }

  @Test("the records of a transaction are read inside it and afterwards")
  func recorded() throws {
    let device = try DirectDevice("device-0", limits: .standard, clock: DirectClock(seed: 1))
    #expect(try RecordedOperations.lastSequence(device.reader) == 0)
    let inside = try device.perform(action(.post, 1), sizes: Workload.Sizes())
    #expect(try RecordedOperations.read(device.reader, after: 0) == inside)
    #expect(inside.allSatisfy { $0.kind == .insert && $0.key.table == "ledger" && $0.base == 0 })
    #expect(inside.map { Set($0.columns.map(\.name)) }.allSatisfy { $0.contains("txn") })
    let last = try RecordedOperations.lastSequence(device.reader)
    #expect(last == Int64(inside.count))
    let beat = try device.perform(action(.beat, 1), sizes: Workload.Sizes())
    #expect(try RecordedOperations.read(device.reader, after: last) == beat)
    #expect(beat.first?.columns == [Column("n", 1)])
  }

  @Test("readers join an open transaction, and reject files without a replica or a space")
  func transactions() throws {
    let world = try DirectWorld(seed: 5, devices: 1)
    let inside = try world.devices[0].reader.transaction(.deferred) {
      try ReplicaEvidence.read(world.devices[0].reader)
    }
    #expect(inside.pending.isEmpty)
    let empty = try SQLiteConnection(path: ":memory:")
    #expect(throws: SQLiteError.self) { try ReplicaEvidence.read(empty) }
    let store = try SQLiteConnection(path: world.storePath, mode: .readOnly)
    let other = try #require(SpaceName("other"))
    #expect(throws: UnreadableEvidence.self) { try ServerEvidence.read(store, space: other) }
  }

  @Test("both stores give the same evidence of the same packets")
  func stores() async throws {
    let world = try DirectWorld(seed: 6, devices: 3)
    let url = try PostgresCluster.shared().createDatabase()
    let postgres = try await PostgresStore(
      PostgresAddresses(url), limits: .standard, makeRandom: { DirectWorld.schemaRandom })
    let space = try await postgres.createSpace(world.space.name)
    _ = try await postgres.applySchema(
      SpaceSchema(json: Workload.declared), to: space.id, now: 1_800_000_000_000
    ).get()
    _ = try world.run(operations: 80)
    for batch in world.sent {
      _ = try await postgres.ingest(batch.packets, into: space.id, now: batch.now)
    }
    let connection = try PostgresConnection(url: url)
    let there = try ServerEvidence.read(connection, space: world.space.name)
    let here = try world.final().server
    #expect(there.head == here.head && here.head > 50)
    #expect(there.history == here.history)
    #expect(there.records == here.records)
    #expect(there.buffered == 0 && here.buffered == 0)
    #expect(there.epoch == space.epoch)
    #expect(here.history.contains { !$0.columnTimes.isEmpty })
    #expect(here.history.contains { $0.increments == ["votes"] })
    #expect(here.history.contains { !$0.outcome.conflicts.isEmpty })
    await postgres.close()
  }
}
