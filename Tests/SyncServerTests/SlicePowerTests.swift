import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Slices of large packets are not synced one by one.
@Suite("Loss of power while the embedded store writes a large packet", .hangLimit)
struct SlicePowerTests {
  private static let folder = "/server"
  private let slice = WriteSlice(rows: 20, bytes: 4_000, matches: 10)
  private let now: Int64 = 1_800_000_000_000

  private func open(_ disk: SimulatedDisk) throws -> SQLiteStoreFile {
    try SQLiteStoreFile(
      path: "\(Self.folder)/ferry.sqlite", limits: .standard, fileSystem: disk.fileSystem,
      slice: slice)
  }

  /// Returns the values of the records visible to readers, and the head.
  private func found(_ file: SQLiteStoreFile, in space: Int64) throws -> (values: Set<Value>, Int64)
  {
    let states = try file.connection.rows("SELECT state FROM records WHERE space = ?", space) {
      try RecordState(stored: $0.blobBytes(0), limits: .stored)
    }
    #expect(states.count == 60)
    return (Set(states.compactMap { $0.columns.first?.value }), try file.head(of: space))
  }

  @Test("the packet is applied whole or not at all, and stays once it was confirmed")
  func power() throws {
    var (applied, lost) = (0, 0)
    for seed in UInt64(0)..<80 {
      let numbers = DrawnNumbers(seed)
      let disk = SimulatedDisk(name: "slices", clock: { now }, random: { numbers.next() })
      let file = try open(disk)
      let space = try file.createSpace(try #require(SpaceName("one")), epoch: Epoch(7)).id
      var maker = PacketMaker(1)
      let inserts = (0..<60).map { maker.operation(.insert, "r\($0)", [Column("v", "a")]) }
      let updates = (0..<60).map { maker.operation(.update, "r\($0)", [Column("v", "b")]) }
      func send(_ operations: [SyncOperation], _ file: SQLiteStoreFile) throws {
        let packet = IncomingPacket(maker.packet(operations), byteCount: 100)
        _ = try file.ingest([packet], into: space, now: now, BatchMatches())
      }
      try send(inserts, file)
      try file.prepareForSlices()
      let crash = Int(numbers.next() % 400)
      var (step, isConfirmed) = (0, false)
      disk.faults = { _ in
        step += 1
        return step == crash ? .crash : nil
      }
      disk.onCrash = { [unowned disk] _ in disk.losePower(under: Self.folder) }
      do {
        try send(updates, file)
        isConfirmed = true
      } catch {}
      disk.faults = { _ in nil }
      disk.onCrash = { _ in }
      disk.losePower(under: Self.folder)
      let next = try open(disk)
      for _ in 0..<2 {
        let (values, head) = try found(next, in: space)
        if isConfirmed || head == 120 {
          #expect(values == ["b"] && head == 120, "seed \(seed)")
        } else {
          #expect(values == ["a"] && head == 60, "seed \(seed)")
        }
        // What is left of the packet is removed, and nothing changes.
        try next.removeStagedRows()
      }
      let rows = try next.connection.first("SELECT count(*) FROM record_rows") { $0.int64(0) }
      let check = try next.connection.first("PRAGMA integrity_check") { $0.text(0) }
      #expect(rows == 60 && check == "ok", "seed \(seed)")
      if isConfirmed { applied += 1 } else { lost += 1 }
    }
    #expect(applied > 0 && lost > 0)
  }
}

/// SplitMix64: the same numbers for the same seed.
private final class DrawnNumbers {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
