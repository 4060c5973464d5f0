import FerryConformance
import FerryMissions
import FerryPlatform
import FerrySimulation
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// A file store on a disk that fails at any step and loses unsynced writes.
@Suite(.hangLimit)
struct FileStorePowerTests {
  private static let root = "/device/files"
  private static let keys = ["a", "b", "c"]

  /// The end of a process at a step.
  enum End: CaseIterable {
    /// Killed: all writes are there.
    case kill
    /// The power is lost: unsynced writes may be gone.
    case powerLoss
    /// The disk is full for one step; the process goes on.
    case fullDisk
  }

  private static func disk(_ seed: UInt64) -> SimulatedDisk {
    let random = Mutex(SeededRandom(seed, "files"))
    return SimulatedDisk(name: "files-\(seed)", clock: { 1_800_000_000_000 }) {
      random.withLock { $0.next() }
    }
  }

  private static func open(_ disk: SimulatedDisk, _ key: [UInt8]?) async throws -> FileStore {
    let thread = InlineExecutor()
    return try await FileStore.open(
      root, key: key, options: FileStoreOptions(),
      system: SimulatedFileCalls(disk.folders(of: "/device")) { true },
      fileSystem: disk.fileSystem, now: { 1_800_000_000_000 }
    ) { _ in thread }
  }

  private static func content(_ key: String, _ version: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(version), count: 1_000 + key.utf8.count + version * 70_000)
  }

  /// Stores versions of some keys and removes others. Notes each successful step.
  private static func work(_ files: FileStore, _ done: Progress) async throws {
    for version in 1...3 {
      for key in Self.keys {
        done.begin(key, version)
        try await files.put(content(key, version), for: key)
        done.end(key, version)
      }
      if version == 2 {
        done.begin("b", 0)
        try await files.remove("b")
        done.end("b", 0)
      }
    }
    try await files.close()
  }

  @Test(
    "each file is the last stored one, or the one that was being stored, after any end",
    arguments: End.allCases, [nil, [UInt8](repeating: 3, count: 32)])
  func anyStep(end: End, key: [UInt8]?) async throws {
    var step = 0
    var isOver = false
    while !isOver {
      let disk = Self.disk(UInt64(step))
      let left = Mutex(step)
      let done = Progress()
      disk.faults = { asked in
        let number = left.withLock { left in
          left -= asked.operation == .read ? 0 : 1
          return left
        }
        switch end {
        case .fullDisk: return number == -1 ? .diskFull : nil
        case .kill, .powerLoss: return number < 0 ? .ioFailure : nil
        }
      }
      // Errors here come from the faults.
      try? await Self.work(Self.open(disk, key), done)
      isOver = left.withLock { $0 >= 0 }
      disk.faults = { _ in nil }
      if end == .powerLoss {
        disk.losePower(under: "/device/")
      } else {
        disk.kill(under: "/device/")
      }
      try await Self.check(disk, key, done, "\(end), step \(step)")
      step += end == .fullDisk ? 1 : 2
    }
    #expect(step > 100)
  }

  private static func check(
    _ disk: SimulatedDisk, _ key: [UInt8]?, _ done: Progress, _ place: String
  ) async throws {
    let files = try await open(disk, key)
    var count = 0
    for name in keys {
      let allowed = done.allowed(name)
      let file = try await files.file(name)
      let versions = allowed.filter { $0 > 0 }.filter {
        file?.size == Int64(content(name, $0).count)
      }
      if file == nil {
        #expect(allowed.contains(0), "\(place): \(name) is gone")
      } else {
        count += 1
        let version = try #require(versions.first, "\(place): \(name) is another version")
        #expect(try await files.read(name) == content(name, version), "\(place)")
        #expect(try await files.check(name) == .intact, "\(place)")
      }
    }
    // A file whose removal was interrupted still counts.
    #expect(try await (count...keys.count).contains(files.usage().count), "\(place)")
    let paths = disk.folders(of: "/device").paths()
    #expect(paths.count { $0.hasPrefix("files/new/") } == 0, "\(place): a leftover stays")
    #expect(paths.count { $0.hasPrefix("files/files/") } == count, "\(place): a stray file")
    // All of it can be used again.
    try await files.removeAll()
    #expect(try await files.usage().bytesOnDisk == 0, "\(place)")
    try await files.put([1], for: "a")
    #expect(try await files.read("a") == [1], "\(place)")
  }
}

/// The possible versions of each key on a disk; 0 is none.
private final class Progress: Sendable {
  private let state = Mutex<[String: [Int]]>([:])

  func begin(_ key: String, _ version: Int) {
    state.withLock { $0[key, default: [0]].append(version) }
  }

  func end(_ key: String, _ version: Int) { state.withLock { $0[key] = [version] } }

  func allowed(_ key: String) -> [Int] { state.withLock { $0[key] ?? [0] } }
}

/// Runs all work on the caller's thread: a simulated disk allows one use at a time, ends of
/// connections included.
private final class InlineExecutor: WorkExecutor {
  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try body()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    job.runSynchronously(on: asUnownedSerialExecutor())
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }
}
