import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation
import Synchronization

/// The content of missions in a folder of the file system.
public final class DiskFileStore: MissionFiles {
  /// The path of the folder.
  public let root: String
  private let folders: StoreFolders
  private let executor: any WorkExecutor
  /// Threads for reads, so they do not wait for hashing or sealing.
  private let readers: any WorkExecutor

  /// Opens the folder at `root`, and creates an absent one.
  ///
  /// - Parameter key: 32 bytes; they encrypt content from the first fetched byte (``ContentSeal``).
  /// - Throws: ``MissionError/Kind/files``, ``MissionError/Kind/diskFull``;
  ///   ``MissionError/Kind/wrongKey`` for a key of another length.
  public convenience init(root: String, key: [UInt8]? = nil) throws(MissionError) {
    try self.init(root: root, key: key) { ThreadExecutor(name: $0) }
  }

  package init(
    root: String, key: [UInt8]?, system: any FileCalls = SystemFileCalls(),
    makeExecutor: (String) -> any WorkExecutor
  ) throws(MissionError) {
    let seal = key.flatMap { ContentSeal(key: $0) }
    guard (seal == nil) == (key == nil) else {
      throw MissionError(.wrongKey, "a key for encryption at rest has \(AESGCM.keyBytes) bytes")
    }
    self.root = root
    folders = try MissionError.converting {
      try StoreFolders(root: root, seal: seal, system: system)
    }
    executor = makeExecutor("mission-files")
    readers = makeExecutor("mission-readers")
  }

  public var isSealed: Bool { seal != nil }

  public var seal: ContentSeal? { folders.seal }

  private var proof: SealProof { SealProof(cipher: seal?.cipher, of: "ferry missions") }

  public func sealProof() -> [UInt8] { proof.make() }

  public func accepts(sealProof proof: [UInt8]) -> Bool { self.proof.accepts(proof) }

  public func partialPath(of hash: ContentHash) -> String { "\(root)/partial/\(hash)" }

  public func plainPath(of hash: ContentHash) -> String? {
    isSealed ? nil : "\(root)/objects/\(hash.description.prefix(2))/\(hash)"
  }

  public func bundlePath(of mission: MissionID, version: Int64) -> String {
    "\(root)/bundles/\(mission)/\(VersionName.folder(version))"
  }

  public func freeBytes() async throws(MissionError) -> Int64 {
    try await perform { folders in try folders.freeBytes() }
  }

  public func has(_ content: StoredContent) async throws(MissionError) -> Bool {
    try await perform { folders in try folders.has(content) }
  }

  public func isIntact(
    _ content: StoredContent, reading: (@Sendable (Int64) -> Void)?
  ) async throws(MissionError) -> Bool {
    // A read takes long; a cancelled caller does not wait for the end.
    let isStopped = StopMark()
    let found: Result<Bool, MissionError> = await withTaskCancellationHandler {
      do throws(MissionError) {
        return .success(
          try await perform { folders in
            try folders.isIntact(content) { bytes in
              reading?(bytes)
              return !isStopped.isSet
            }
          })
      } catch {
        return .failure(error)
      }
    } onCancel: {
      isStopped.set()
    }
    return try found.get()
  }

  public func adopt(_ content: StoredContent) async throws(MissionError) {
    try await perform { folders in try folders.adopt(content) }
  }

  public func partialBytes(
    of hash: ContentHash, limit: Int64
  ) async throws(MissionError) -> [UInt8] {
    try await perform { folders in
      try folders.partialBytes(of: hash, limit: limit)
    }
  }

  public func copy(
    _ part: StoredPart, to content: StoredContent, at offset: Int64
  ) async throws(MissionError) -> Bool {
    try await perform { folders in
      try folders.copy(part, to: content, at: offset)
    }
  }

  public func sync(_ hashes: [ContentHash]) async throws(MissionError) {
    try await perform { folders in try folders.sync(hashes) }
  }

  public func build(_ bundle: BundlePlan) async throws(MissionError) {
    try await perform { folders in try folders.build(bundle) }
  }

  public func fault(in bundle: BundlePlan) async throws(MissionError) -> MissionError? {
    try await perform { folders in try folders.fault(in: bundle) }
  }

  public func repair(_ bundle: BundlePlan) async throws(MissionError) {
    try await perform { folders in try folders.repair(bundle) }
  }

  public func removeBundle(of mission: MissionID, version: Int64) async throws(MissionError) {
    try await perform { folders in
      try folders.removeBundle(of: mission, version: version)
    }
  }

  public func removeObject(_ hash: ContentHash) async throws(MissionError) {
    try await perform { folders in try folders.removeObject(hash) }
  }

  public func removePartial(_ hash: ContentHash) async throws(MissionError) {
    try await perform { folders in try folders.removePartial(hash) }
  }

  public func open(
    _ content: StoredContent, partSize: Int64, parts: [ContentHash]
  ) async throws(MissionError) -> MissionContent {
    try await readers.perform(MissionError.self) { [folders, readers] in
      guard try folders.has(content), let shelf = try folders.shelf(of: content.hash) else {
        throw MissionError(.damaged, "content \(content.hash) is missing or has another size")
      }
      let file = try shelf.openFile(content.hash.description)
      let reader = try PartReader(
        content: content, format: try folders.format(of: content, in: file), partSize: partSize,
        parts: parts)
      return MissionContent(file, reader: reader, on: readers)
    }
  }

  public func lock(_ name: LockName) throws(MissionError) -> FileLock? {
    try MissionError.converting {
      guard case .content(let hash) = name else {
        return try FileLock.acquire(lockPath(name), folders.system)
      }
      // Two contents with the same beginning of their hashes wait for each other now and then.
      return try FileLock.acquire(
        lockPath(name), byte: hash.bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) } & .max,
        folders.system)
    }
  }

  public func share(_ name: LockName) throws(MissionError) -> FileLock? {
    try MissionError.converting { try FileLock.share(lockPath(name), folders.system) }
  }

  private func lockPath(_ name: LockName) -> String {
    switch name {
    case .mission(let id): "\(root)/locks/mission-\(id)"
    case .content: "\(root)/locks/content"
    case .use(let id): "\(root)/locks/use-\(id)"
    }
  }

  public func collect(
    needed: @escaping @Sendable () async throws(MissionError) -> NeededFiles
  ) async throws(MissionError) -> Int {
    let found = try await perform { folders in try folders.found() }
    let garbage = KeepingPlan.garbage(found, needed: try await needed())
    return try await perform { [self] folders in
      for hash in garbage.objects { try folders.removeObject(hash) }
      for hash in garbage.partials { try folders.removePartial(hash) }
      for bundle in garbage.bundles {
        try folders.removeBundle(of: bundle.mission, version: bundle.version)
      }
      // A version under work in a process is not garbage.
      for bundle in garbage.building {
        guard let lock = try lock(.mission(bundle.mission)) else { continue }
        defer { lock.release() }
        try folders.folder("bundles").folder(bundle.mission.value)?
          .removeTree(StoreFolders.buildingPrefix + VersionName.folder(bundle.version))
      }
      return garbage.count
    }
  }

  private func perform<T: Sendable>(
    _ body: @escaping @Sendable (StoreFolders) throws -> T
  ) async throws(MissionError) -> T {
    try await executor.perform(MissionError.self) { [folders] in try body(folders) }
  }
}

/// Notifies blocking work that no caller waits for it any more.
private final class StopMark: Sendable {
  private let mark = Atomic(false)

  var isSet: Bool { mark.load(ordering: .relaxed) }

  func set() { mark.store(true, ordering: .relaxed) }
}
