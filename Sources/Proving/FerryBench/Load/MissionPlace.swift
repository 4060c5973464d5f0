import FerryLaboratory
import Foundation

/// A server with missions and a downloading device, all real processes.
struct MissionPlace: Sendable {
  static let space = "missions"

  let directory: TemporaryDirectory
  let daemon: Daemon
  private let data: String
  private let ferry: URL
  private let ferryd: URL

  static func make() async throws -> MissionPlace {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let data = directory.file("data").path
    let place = MissionPlace(
      directory: directory, daemon: try await Daemon.start(store: ["--data", data]), data: data,
      ferry: try Executables.ferry(), ferryd: try Executables.ferryd())
    try await place.join("replica.db", at: place.daemon.url)
    return place
  }

  /// Returns a device's replica file.
  func replica(_ name: String = "replica.db") -> String { directory.file(name).path }

  /// Makes a device with the server's address `url`.
  func join(_ name: String, at url: String) async throws {
    try await run("init", "--server", url, "--space", Self.space, on: name)
  }

  /// Runs `ferry` on a device.
  func run(_ words: String..., on name: String = "replica.db") async throws {
    let finished = try await ChildProcess.run(
      ferry, ["--replica", replica(name)] + words, within: .seconds(600))
    guard finished.status == .exited(0) else {
      throw BenchError("ferry \(words) failed: \(finished.error)\(finished.output)")
    }
  }

  /// Starts `ferry mission …` with events as lines of JSON.
  func start(_ words: String..., on name: String = "replica.db") throws -> ChildProcess {
    try ChildProcess(ferry, ["--replica", replica(name), "mission"] + words + ["--json"])
  }

  /// Publishes a folder on the server's store, or on another one.
  func publish(
    _ folder: String, as id: String, on store: String? = nil
  ) async throws -> MeasuredProcess {
    try await MeasuredProcess.run(
      ferryd,
      ["mission", "publish", directory.file(folder).path, "--id", id, "--space", Self.space]
        + ["--data", store ?? data])
  }

  /// Makes another store with only the space.
  func makeStore(_ name: String) async throws -> String {
    let path = directory.file(name).path
    let made = try await ChildProcess.run(
      ferryd, ["space", "create", Self.space, "--data", path])
    guard made.status == .exited(0) else { throw BenchError(made.error) }
    return path
  }

  /// Downloads a mission missing on the device.
  func download(_ id: String) async throws -> MeasuredProcess {
    try await MeasuredProcess.run(
      ferry, ["--replica", replica(), "mission", "download", id, "--json"])
  }

  /// Removes a mission, and lets the disk come to rest.
  func remove(_ id: String, on name: String = "replica.db") async throws {
    try await run("mission", "remove", id, on: name)
    sync()
  }

  func remove(file name: String) throws {
    try FileManager.default.removeItem(at: directory.file(name))
    sync()
  }

  // MARK: Content

  /// Makes a folder with one random-looking file without two equal parts.
  func makeLarge(_ folder: String, bytes: Int) throws -> String {
    let file = try make(folder).appending(path: "large.bin")
    var random = SeededRandom(seed: 5)
    var part = (0..<1 << 13).map { _ in random.next() }
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    for number in 0..<bytes / (part.count * 8) {
      part[0] = UInt64(number)
      try part.withUnsafeBytes { try handle.write(contentsOf: Data($0)) }
    }
    try handle.close()
    sync()
    return file.path
  }

  /// Makes a folder with many files of 1 to 20 KiB. Returns the bytes of all.
  func makeSmall(_ folder: String, files: Int) throws -> Int {
    let path = try make(folder)
    var random = SeededRandom(seed: 6)
    var total = 0
    for number in 0..<files {
      if number < 100 {
        try FileManager.default.createDirectory(
          at: path.appending(path: "part-\(number)"), withIntermediateDirectories: false)
      }
      let words = 128 + Int(random.next() % 2_433)
      let content = (0..<words).map { _ in random.next() }
      let file = path.appending(path: "part-\(number % 100)/\(number).bin")
      try content.withUnsafeBytes { try Data($0).write(to: file) }
      total += words * 8
    }
    return total
  }

  private func make(_ folder: String) throws -> URL {
    let path = directory.file(folder)
    try FileManager.default.createDirectory(at: path, withIntermediateDirectories: false)
    return path
  }
}
