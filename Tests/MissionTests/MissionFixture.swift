import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

let spaceName = made(SpaceName("test"))

func mission(_ name: String) -> MissionID { made(MissionID(name)) }

func hash(_ bytes: [UInt8]) -> ContentHash { made(ContentHash(SHA256.digest(of: bytes))) }

/// Returns a value known to be there.
func made<T>(_ value: T?) -> T {
  guard let value else { fatalError("the test names what cannot be") }
  return value
}

/// A folder, removed with the test.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    var template = Array((NSTemporaryDirectory() + "/ferry-missions-XXXXXX").utf8CString)
    guard let made = mkdtemp(&template) else { throw FileStoreError(errno: errno, "no folder") }
    path = String(cString: made)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A mission as a publisher makes it.
struct Publication {
  let manifest: MissionManifest
  let document: [UInt8]
  let record: MissionRecord
  let contents: [ContentHash: [UInt8]]

  init(
    _ id: String, version: Int64 = 1, _ files: [(String, [UInt8])], after: [String] = [],
    priority: Int64 = 0, chunkSize: Int64 = 64 << 10, url: ((String) -> String?)? = nil,
    key: Ed25519.SecretKey = Publication.key
  ) {
    var contents: [ContentHash: [UInt8]] = [:]
    let items = files.map { path, bytes in
      contents[hash(bytes)] = bytes
      var chunks: [ContentHash] = []
      if bytes.count > Int(chunkSize) {
        chunks = stride(from: 0, to: bytes.count, by: Int(chunkSize)).map {
          hash(Array(bytes[$0..<min($0 + Int(chunkSize), bytes.count)]))
        }
      }
      return MissionItem(
        path: path, size: Int64(bytes.count), hash: hash(bytes), chunks: chunks, url: url?(path))
    }
    manifest = MissionManifest(
      space: spaceName, id: mission(id), version: version, title: "Mission \(id)",
      priority: priority, after: after.map(mission), chunkSize: chunkSize, items: items)
    document = manifest.encoded()
    contents[hash(document)] = document
    self.contents = contents
    record = MissionRecord(
      of: manifest, hash: hash(document), manifestSize: Int64(document.count),
      signature: key.sign(MissionManifest.signedMessage(document)), signer: key.publicKey.bytes,
      publishedAt: 1)
  }

  /// Creates the same publication with another record.
  init(_ other: Publication, record: MissionRecord) {
    (manifest, document, contents) = (other.manifest, other.document, other.contents)
    self.record = record
  }

  /// Creates a manifest whose content no server has.
  init(_ manifest: MissionManifest) {
    self.manifest = manifest
    document = manifest.encoded()
    contents = [hash(document): document]
    record = MissionRecord(
      of: manifest, hash: hash(document), manifestSize: Int64(document.count),
      signature: Self.key.sign(MissionManifest.signedMessage(document)),
      signer: Self.key.publicKey.bytes, publishedAt: 1)
  }

  static let key = made(try? Ed25519.SecretKey([UInt8](repeating: 7, count: 32)))
}

/// The published missions, for a manager under test.
final class Shelf: MissionCatalogue, Downloader {
  /// A disturbance of a download, once each.
  enum Obstacle: Sendable {
    case fails(DownloadError)
    /// Fetches so many bytes, and loses the connection.
    case breaksOff(after: Int)
    /// Writes so many bytes and then waits until the task is cancelled.
    case hangs(after: Int)
    /// Continues when so many run at once.
    case waits(forRunning: Int)
  }

  private struct State {
    var records: [MissionID: MissionRecord] = [:]
    var contents: [ContentHash: [UInt8]] = [:]
    var obstacles: [ContentHash: [Obstacle]] = [:]
    var fetches: [ContentHash: Int] = [:]
    var running = 0
    var runningMax = 0
    var order: [ContentHash] = []
    var bytesFetched = 0
  }

  private let state = Mutex(State())

  func publish(_ publication: Publication) {
    state.withLock { state in
      state.records[publication.manifest.id] = publication.record
      state.contents.merge(publication.contents) { $1 }
    }
  }

  /// Replaces a mission's record in the catalogue.
  func replace(_ record: MissionRecord) { state.withLock { $0.records[record.id] = record } }

  func retract(_ id: String) { state.withLock { $0.records[mission(id)] = nil } }

  func obstruct(_ bytes: [UInt8], _ obstacles: Obstacle...) {
    state.withLock { $0.obstacles[hash(bytes), default: []] += obstacles }
  }

  func fetches(of bytes: [UInt8]) -> Int { state.withLock { $0.fetches[hash(bytes)] ?? 0 } }
  var order: [ContentHash] { state.withLock { $0.order } }
  var running: Int { state.withLock { $0.running } }
  var runningMax: Int { state.withLock { $0.runningMax } }
  var bytesFetched: Int { state.withLock { $0.bytesFetched } }

  func space() async throws(MissionError) -> SpaceName { spaceName }

  func missions() async throws(MissionError) -> [MissionRecord] {
    state.withLock { $0.records.values.sorted { $0.id < $1.id } }
  }

  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    guard let hash = job.hash else { throw DownloadError(.server(404), "it has no hash") }
    let obstacle = state.withLock { state -> Obstacle? in
      state.fetches[hash, default: 0] += 1
      state.order.append(hash)
      state.running += 1
      state.runningMax = max(state.runningMax, state.running)
      guard state.obstacles[hash]?.isEmpty == false else { return nil }
      return state.obstacles[hash]?.removeFirst()
    }
    defer { state.withLock { $0.running -= 1 } }
    guard let content = state.withLock({ $0.contents[hash] }) else {
      throw DownloadError(.server(404), "the server answered 404")
    }
    switch obstacle {
    case .fails(let error): throw error
    case .breaksOff(let count):
      progress(
        DownloadProgress(
          bytesDone: Int64(count), bytesTotal: job.size, bytesFetched: Int64(count)))
      throw DownloadError(.offline, "the connection broke off")
    case .hangs(let count): try await hang(job, content, after: count, progress)
    case .waits(let count): try await waits(for: count)
    case nil: break
    }
    return try await write(job, content, progress)
  }

  /// Waits until so many downloads run at once.
  private func waits(for count: Int) async throws(DownloadError) {
    do {
      try await eventually("\(count) downloads at once") { runningMax >= count }
    } catch {
      throw DownloadError(.cancelled, "\(error)")
    }
  }

  /// Absent chunks come from other objects or from the shelf.
  private func write(
    _ job: DownloadJob, _ content: [UInt8], _ progress: @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    var outcome = DownloadOutcome(bytesFetched: 0, bytesReused: 0)
    let size = job.chunks.isEmpty ? max(1, content.count) : Int(job.chunkSize)
    if content.isEmpty { try job.write([], at: 0) }
    for (index, start) in stride(from: 0, to: content.count, by: size).enumerated() {
      let part = Array(content[start..<min(start + size, content.count)])
      let isThere = !job.chunks.isEmpty && job.map[index]
      var local = job.chunks.isEmpty || isThere ? nil : await job.reuse(job.chunks[index])
      if let found = local, bytes(of: found) != part { local = nil }
      if isThere || local != nil {
        outcome.bytesReused += Int64(part.count)
      } else {
        outcome.bytesFetched += Int64(part.count)
        state.withLock { $0.bytesFetched += part.count }
      }
      if isThere { continue }
      try job.write(part, at: Int64(start))
      progress(
        DownloadProgress(
          bytesDone: Int64(start + part.count), bytesTotal: job.size,
          bytesFetched: outcome.bytesFetched))
    }
    return outcome
  }

  private func bytes(of chunk: LocalChunk) -> [UInt8]? {
    guard let file = FileHandle(forReadingAtPath: chunk.path) else { return nil }
    try? file.seek(toOffset: UInt64(chunk.offset))
    return (try? file.read(upToCount: chunk.length)).map { Array($0) }
  }

  private func hang(
    _ job: DownloadJob, _ content: [UInt8], after count: Int,
    _ progress: @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) {
    // Encrypted content is in the file part by part.
    let written = job.seal == nil ? count : count / (64 << 10) * (64 << 10)
    try job.write(Array(content[..<written]), at: 0)
    state.withLock { $0.bytesFetched += count }
    if !job.chunks.isEmpty {
      var map = job.map
      for index in 0..<min(job.chunks.count, count / Int(job.chunkSize)) { map[index] = true }
      try? await job.record(map)
    }
    progress(
      DownloadProgress(
        bytesDone: Int64(count), bytesTotal: job.size, bytesFetched: Int64(count)))
    let (stream, _) = AsyncStream.makeStream(of: Void.self)
    for await _ in stream {}
    throw DownloadError(.cancelled, "cancelled")
  }
}

/// A device: a manager over real files and rows.
struct Device {
  let folder: TemporaryFolder
  let shelf: Shelf
  let store: SQLiteMissionStore
  let files: DiskFileStore
  let manager: MissionManager

  init(
    _ shelf: Shelf, in folder: TemporaryFolder? = nil, key: [UInt8]? = nil,
    options: MissionOptions = MissionOptions()
  ) async throws {
    let place = try folder ?? TemporaryFolder()
    self.folder = place
    self.shelf = shelf
    store = try await SQLiteMissionStore.open(place.path + "/missions.db")
    files = try DiskFileStore(root: place.path + "/content", key: key)
    var options = options
    options.spaceMargin = 0
    var surroundings = MissionSurroundings.system
    // Pauses are for the sake of servers; a yield keeps the order of events.
    surroundings.sleep = { duration in
      try await Task.sleep(for: min(duration, .milliseconds(5)))
    }
    manager = try await MissionManager.open(
      store: store, files: files, downloader: shelf, catalogue: shelf, options: options,
      in: surroundings)
  }

  /// Opens the same files as another process.
  func another(_ options: MissionOptions = MissionOptions()) async throws -> Device {
    try await Device(shelf, in: folder, options: options)
  }

  /// Downloads, and waits for the end.
  @discardableResult
  func download(_ ids: String...) async throws -> [MissionStatus] {
    try await manager.download(ids.map(mission))
    return try await manager.waitUntilIdle(ids.map(mission))
  }

  func state(_ id: String) async throws -> MissionState? {
    try await manager.mission(mission(id)).state
  }

  /// Reads a file in the folder of the version in use, as an app does.
  func read(_ path: String, in id: String) async throws -> [UInt8]? {
    let folder = try await manager.path(mission(id))
    return FileManager.default.contents(atPath: folder + "/" + path).map { Array($0) }
  }

  /// Overwrites a part of a file in the folder of the version in use, as another program would.
  func damage(_ path: String, of id: String, with bytes: [UInt8], at offset: UInt64 = 0)
    async throws
  {
    let path = try await manager.path(mission(id)) + "/" + path
    chmod(path, 0o600)
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    try file.seek(toOffset: offset)
    try file.write(contentsOf: Data(bytes))
    try file.close()
  }

  /// Returns everything below the content's folder, but for locks.
  func everything() -> [String] {
    let root = folder.path + "/content"
    let found = FileManager.default.enumerator(atPath: root)?.allObjects as? [String] ?? []
    return found.filter { path in
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: root + "/" + path, isDirectory: &isFolder)
      return !isFolder.boolValue && !path.hasPrefix("locks/")
    }.sorted()
  }

  /// Waits until a mission is as it should be.
  func wait(for id: String, _ isRight: (MissionStatus) -> Bool) async throws {
    let events = manager.events()
    if isRight(try await manager.mission(mission(id))) { return }
    for await _ in events where isRight(try await manager.mission(mission(id))) { return }
  }
}

/// Returns pseudorandom bytes, the same each time.
func content(_ seed: UInt64, _ count: Int) -> [UInt8] { seededBytes(seed, count) }
