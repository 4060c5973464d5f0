import Ferry
import FerryPostgres
import FerrySQLite
import FerrySyncClient
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMirror

/// Pulls that arrive beside a step of a mirror. The rounds run in this process, so that a pull can end
/// at one moment of the step.
@Suite("Mirrors whose replica pulls beside a step", .hangLimit)
struct MirrorFetchTests {
  /// A replica that pulls once, as a step opens the file.
  private final class Fetch: Sendable {
    private let replica: Replica
    private let isArmed = Atomic(false)

    init(_ replica: Replica) { self.replica = replica }

    /// Makes the next step pull.
    func arm() { isArmed.store(true, ordering: .releasing) }

    var hasRun: Bool { !isArmed.load(ordering: .acquiring) }

    /// Pulls on the thread of the step.
    func run() {
      guard isArmed.exchange(false, ordering: .acquiringAndReleasing) else { return }
      let done = DispatchSemaphore(value: 0)
      Task { [replica] in
        _ = try? await replica.sync()
        done.signal()
      }
      done.wait()
    }
  }

  @Test("a refused transaction is sent again if its records are fetched after the step has begun")
  func fetchedInStep() async throws {
    let company = try await MirrorRefusalTests.adopted()
    let (stage, device) = (company.stage, company.device)
    let folder = MirrorFolder("crm", in: stage.mirrors.url.path)
    let configuration = try folder.configuration()
    let pool = try PostgresPool(url: stage.database, connections: 2, settings: .mirrors)
    let ledger = try #require(
      try await pool.run { try MirrorLedger(configuration.name, $0) })
    var surroundings = ReplicaSurroundings.system
    (surroundings.isAuthority, surroundings.sendsDurably) = (true, true)
    let address = try ServerAddress(checking: configuration.server, space: configuration.space)
    let path = folder.replica
    let replica = try await Replica.open(path, server: address, in: surroundings)
    let fetch = Fetch(replica)
    let rounds = MirrorRounds(
      MirrorRounds.Sides(configuration, ledger, replica: replica, pool: pool, log: { _, _ in }) {
        fetch.run()
        return try SQLiteConnection(path: path, mode: .readOnly)
      })
    var state = MirrorRounds.State()
    try await rounds.run(&state)
    // The step has something to write.
    try await device.write("UPDATE notes SET body = 'new' WHERE id = 2")
    try await device.exchangeAll()
    try await replica.sync()
    try await device.write(
      "INSERT INTO users VALUES (9, 'ada@x'); UPDATE accounts SET balance = balance + 5 WHERE id = 1"
    )
    try await device.exchangeAll()
    try stage.sql(
      """
      BEGIN; INSERT INTO users VALUES (1, 'ada@x');
      UPDATE accounts SET balance = balance - 40 WHERE id = 1;
      UPDATE accounts SET balance = balance + 40 WHERE id = 2; COMMIT
      """)
    fetch.arm()
    #expect(await rounds.readBeforePull())
    #expect(try await replica.quarantine.entries().count == 1)
    try await rounds.run(&state)
    #expect(fetch.hasRun)
    try await rounds.runOnce()
    try await device.exchangeAll()
    #expect(try await device.rows("SELECT balance FROM accounts ORDER BY id") == [[65], [140]])
    #expect(
      try stage.rows("SELECT balance::text FROM accounts ORDER BY id") == [["65"], ["140"]])
    #expect(try await device.rows("SELECT id, email FROM users") == [[1, "ada@x"]])
    let entry = try #require(try await device.open().quarantine.entries().first)
    #expect(entry.detail == "the company's row 1 of table users has this email")
    #expect(try stage.rows("SELECT body FROM notes WHERE id = 2") == [["new"]])
    await replica.close()
    await pool.close()
  }
}
