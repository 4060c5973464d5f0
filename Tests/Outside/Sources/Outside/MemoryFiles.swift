import Ferry
import Foundation
import Synchronization

/// The content of missions in memory.
final class MemoryFiles: MissionFiles {
  private struct State {
    var objects: [ContentHash: [UInt8]] = [:]
    var bundles: Set<MissionVersion> = []
    var locks: Set<LockName> = []
    var sharers: [LockName: Int] = [:]
  }

  private let folder: String
  private let state = Mutex(State())

  /// Creates an empty store; a downloader writes to `folder`.
  init(folder: String) { self.folder = folder }

  /// The contents, for the test.
  var contents: [[UInt8]] { state.withLock { $0.objects.values.map { $0 } } }

  let isSealed = false
  func sealProof() -> [UInt8] { [0] }
  func accepts(sealProof: [UInt8]) -> Bool { sealProof == [0] }

  func partialPath(of hash: ContentHash) -> String { "\(folder)/\(hash)" }
  let seal: ContentSeal? = nil
  func plainPath(of hash: ContentHash) -> String? { nil }
  func bundlePath(of mission: MissionID, version: Int64) -> String { "\(mission)/\(version)" }
  func freeBytes() async throws(MissionError) -> Int64 { 1 << 40 }

  func has(_ content: StoredContent) async throws(MissionError) -> Bool {
    state.withLock { $0.objects[content.hash]?.count == Int(content.size) }
  }

  func isIntact(
    _ content: StoredContent, reading: (@Sendable (Int64) -> Void)?
  ) async throws(MissionError) -> Bool { try await has(content) }

  func adopt(_ content: StoredContent) async throws(MissionError) {
    let bytes = try await partialBytes(of: content.hash, limit: content.size)
    state.withLock { $0.objects[content.hash] = bytes }
    try await removePartial(content.hash)
  }

  func partialBytes(
    of hash: ContentHash, limit: Int64
  ) async throws(MissionError) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: partialPath(of: hash)),
      data.count <= limit
    else { throw MissionError(.damaged, "there is no such content") }
    return [UInt8](data)
  }

  func copy(
    _ part: StoredPart, to content: StoredContent, at offset: Int64
  ) async throws(MissionError) -> Bool { false }

  func sync(_ hashes: [ContentHash]) async throws(MissionError) {}

  func build(_ bundle: BundlePlan) async throws(MissionError) {
    state.withLock { _ = $0.bundles.insert(MissionVersion(bundle.mission, bundle.version)) }
  }

  func fault(in bundle: BundlePlan) async throws(MissionError) -> MissionError? {
    let version = MissionVersion(bundle.mission, bundle.version)
    return state.withLock { $0.bundles.contains(version) }
      ? nil : MissionError(.damaged, "there is no such version")
  }

  func repair(_ bundle: BundlePlan) async throws(MissionError) { try await build(bundle) }

  func removeBundle(of mission: MissionID, version: Int64) async throws(MissionError) {
    state.withLock { _ = $0.bundles.remove(MissionVersion(mission, version)) }
  }

  func removeObject(_ hash: ContentHash) async throws(MissionError) {
    state.withLock { $0.objects[hash] = nil }
  }

  func removePartial(_ hash: ContentHash) async throws(MissionError) {
    try? FileManager.default.removeItem(atPath: partialPath(of: hash))
  }

  func open(
    _ content: StoredContent, partSize: Int64, parts: [ContentHash]
  ) async throws(MissionError) -> MissionContent {
    guard let bytes = state.withLock({ $0.objects[content.hash] }) else {
      throw MissionError(.damaged, "there is no such content")
    }
    return MissionContent(content) { offset, count in
      Array(bytes[Int(offset)..<Int(offset) + count])
    }
  }

  func lock(_ name: LockName) throws(MissionError) -> FileLock? {
    let isFree = state.withLock { state in
      state.sharers[name, default: 0] == 0 && state.locks.insert(name).inserted
    }
    guard isFree else { return nil }
    return FileLock { [weak self] in self?.state.withLock { _ = $0.locks.remove(name) } }
  }

  func share(_ name: LockName) throws(MissionError) -> FileLock? {
    let isFree = state.withLock { state in
      guard !state.locks.contains(name) else { return false }
      state.sharers[name, default: 0] += 1
      return true
    }
    guard isFree else { return nil }
    return FileLock { [weak self] in self?.state.withLock { $0.sharers[name, default: 1] -= 1 } }
  }

  func collect(
    needed: @escaping @Sendable () async throws(MissionError) -> NeededFiles
  ) async throws(MissionError) -> Int {
    let needed = try await needed()
    return state.withLock { state in
      let count = state.objects.count + state.bundles.count
      state.objects = state.objects.filter { needed.objects.contains($0.key) }
      state.bundles.formIntersection(needed.bundles)
      return count - state.objects.count - state.bundles.count
    }
  }
}
