import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Determinism of a simulated disk", .hangLimit)
struct DiskDeterminismTests {
  /// Returns all events on a disk with this seed, and the disk's content at the end.
  private func trace(seed: UInt64) throws -> [String] {
    let world = DiskWorld(seed: seed)
    let ledger = Ledger(world.numbers)
    var trace: [String] = []
    let faultNumbers = SeededNumbers(seed)
    var isCalm = false
    world.disk.faults = { step in
      trace.append("\(step.operation) \(step.path) \(step.byteCount)")
      if isCalm { return nil }
      let faults = SimulatedDisk.Fault.allCases
      return faultNumbers.below(60) == 0 ? faults[faultNumbers.below(faults.count)] : nil
    }
    world.disk.onCrash = { [unowned disk = world.disk] path in
      trace.append("crash \(path)")
      disk.losePower(under: "/")
    }
    for _ in 0..<20 {
      if let connection = try? world.connect(synchronous: "NORMAL", checkpoint: 5) {
        for _ in 0..<5 { trace.append("\(failure { try ledger.commit(on: connection) } == nil)") }
      }
      isCalm = true
      let last = try #require(try ledger.find(on: try world.connect()))
      isCalm = false
      ledger.goOn(from: last)
      trace.append("state \(last)")
    }
    for name in world.disk.fileNames(under: "/") {
      trace.append("\(name) \(masked(world.disk.bytes(of: name) ?? [], name))")
    }
    return trace
  }

  /// Returns the bytes without the salts of a write-ahead log and the checksums over them. SQLite
  /// draws the salts from one generator for the whole process.
  private func masked(_ bytes: [UInt8], _ name: String) -> [UInt8] {
    guard name.hasSuffix("-wal") else { return bytes }
    var bytes = bytes
    for index in 16..<max(16, min(32, bytes.count)) { bytes[index] = 0 }
    for frame in stride(from: 32, to: bytes.count, by: 24 + 4096) {
      for index in frame + 8..<max(frame + 8, min(frame + 24, bytes.count)) { bytes[index] = 0 }
    }
    return bytes
  }

  @Test("one seed results in the same steps, faults and bytes again", arguments: 0..<5)
  func sameSeed(seed: UInt64) throws {
    let first = try trace(seed: seed)
    #expect(first == (try trace(seed: seed)))
    #expect(first != (try trace(seed: seed + 1000)))
    #expect(first.contains { $0.hasPrefix("crash") })
  }

  @Test("two disks of one name exist side by side")
  func twoDisks() throws {
    let (first, second) = (DiskWorld(), DiskWorld())
    #expect(first.disk.fileSystem != second.disk.fileSystem)
    let connections = [try first.connect(), try second.connect()]
    try connections[0].execute("CREATE TABLE t(a)")
    first.disk.kill(under: "/")
    try connections[1].execute("CREATE TABLE u(a)")
    #expect(try first.connect().integer("SELECT count(*) FROM t") == 0)
  }

  @Test("disks on several threads do not affect each other")
  func threads() async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for seed: UInt64 in 0..<16 {
        group.addTask {
          let world = DiskWorld(seed: seed)
          let ledger = Ledger(world.numbers)
          for _ in 0..<3 {
            let connection = try world.connect(checkpoint: 3)
            for _ in 0..<10 { try ledger.commit(on: connection) }
            world.disk.kill(under: "/")
          }
          return try ledger.find(on: try world.connect()) == ledger.acknowledged
        }
      }
      for try await isSound in group { #expect(isSound) }
    }
  }

  @Test("a closed disk's name opens nothing")
  func unregistered() throws {
    var world: DiskWorld? = DiskWorld()
    let name = try #require(world?.disk.fileSystem)
    world = nil
    #expect(failure { _ = try SQLiteConnection(path: "/a.db", fileSystem: name) } != nil)
  }

  @Test("a disk exists as long as a connection on it")
  func outlivedByConnection() throws {
    var world: DiskWorld? = DiskWorld()
    let connection = try #require(try world?.connect())
    world = nil
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }
}
