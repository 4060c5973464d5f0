import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySimulation
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// Packets of a replica on a disk that loses unsynced writes.
@Suite(.hangLimit)
struct DurableSendTests {
  private static let path = "/device/replica.db"

  private static func open(_ disk: SimulatedDisk, _ seed: UInt64) throws -> ReplicaFile {
    let random = Mutex(SeededRandom(seed, "identifiers"))
    return try ReplicaFile(
      path: path, wallClock: { 1_800_000_000_000 }, random: { random.withLock { $0.next() } },
      fileSystem: disk.fileSystem)
  }

  /// Returns the number of seeds with which a loss of power takes a packet ready to be sent.
  private static func losses(durably: Bool) throws -> Int {
    var lost = 0
    for seed in 1...20 as ClosedRange<UInt64> {
      let random = Mutex(SeededRandom(seed, "power"))
      let disk = SimulatedDisk(name: "durable", clock: { 1_800_000_000_000 }) {
        random.withLock { $0.next() }
      }
      let file = try open(disk, seed)
      file.sendsDurably = durably
      _ = try file.write {
        try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
      }
      try file.track(["notes"])
      _ = try file.write { try $0.execute("INSERT INTO notes VALUES ('a', 'b')") }
      try file.chain.freeze(limit: 1)
      disk.losePower(under: "/device/")
      let isKept = try open(disk, seed + 100).packets.open().count == 1
      lost += isKept ? 0 : 1
    }
    return lost
  }

  @Test("a loss of power takes no packet that may have been sent, if the replica sends durably")
  func power() throws {
    #expect(try Self.losses(durably: true) == 0)
    #expect(try Self.losses(durably: false) > 0)
  }
}
