import FerryProtocol

/// The files of missions on this device (SPEC.md §21). Each content has a file with its hash as the
/// name. Each version of a mission has a folder with the items under their names.
public protocol MissionFiles: Sendable {
  /// True if content is encrypted at rest; then versions have no folders.
  var isSealed: Bool { get }

  /// Returns a proof of the key, for later calls of ``accepts(sealProof:)``.
  func sealProof() -> [UInt8]

  /// Returns true if a proof was made with the present key, or without a key if there is none.
  func accepts(sealProof: [UInt8]) -> Bool

  /// Returns the path of content during a download.
  func partialPath(of hash: ContentHash) -> String

  /// The encryption of content, from the first fetched byte; `nil` for none.
  var seal: ContentSeal? { get }

  /// Returns the path of a complete, unencrypted content; sealed content has no such path.
  func plainPath(of hash: ContentHash) -> String?

  /// Returns the present or future path of a version's folder.
  func bundlePath(of mission: MissionID, version: Int64) -> String

  /// Returns how many bytes can be written before the disk is full.
  func freeBytes() async throws(MissionError) -> Int64

  /// Returns true if complete content exists with the right size.
  func has(_ content: StoredContent) async throws(MissionError) -> Bool

  /// Returns true if complete content exists and every byte of it is unchanged; reads all of it.
  ///
  /// - Parameter reading: receives the number of bytes read so far.
  /// - Throws: ``MissionError/Kind/cancelled`` soon after the task was cancelled.
  func isIntact(
    _ content: StoredContent, reading: (@Sendable (Int64) -> Void)?
  ) async throws(MissionError) -> Bool

  /// Turns fetched content with a checked hash into complete content.
  func adopt(_ content: StoredContent) async throws(MissionError)

  /// Reads all bytes of fetched content, at most `limit`.
  func partialBytes(of hash: ContentHash, limit: Int64) async throws(MissionError) -> [UInt8]

  /// Copies a part of complete content into a partial file, and checks the bytes. Returns true if
  /// they were right.
  func copy(
    _ part: StoredPart, to content: StoredContent, at offset: Int64
  ) async throws(MissionError) -> Bool

  /// Writes complete content to the disk, names included.
  func sync(_ hashes: [ContentHash]) async throws(MissionError)

  /// Builds the folder of a version from complete content, checks it, writes it to the disk, and
  /// moves it to the final path as a whole. Does nothing if content is sealed.
  func build(_ bundle: BundlePlan) async throws(MissionError)

  /// Returns how the folder of a version differs from the plan; `nil` if it does not. Does not read
  /// files that are hard links to the content.
  func fault(in bundle: BundlePlan) async throws(MissionError) -> MissionError?

  /// Repairs the folder of a version, one file after another: each file is the old or the new one
  /// at any moment.
  func repair(_ bundle: BundlePlan) async throws(MissionError)

  /// Removes the folder of a version, if it exists.
  func removeBundle(of mission: MissionID, version: Int64) async throws(MissionError)

  /// Removes complete content, if it exists.
  func removeObject(_ hash: ContentHash) async throws(MissionError)

  /// Removes the partial file of a content, if it exists.
  func removePartial(_ hash: ContentHash) async throws(MissionError)

  /// Opens complete content for reading. `parts` are the hashes of the parts of `partSize` bytes,
  /// checked when they are read. Without them the whole content is checked, once.
  func open(
    _ content: StoredContent, partSize: Int64, parts: [ContentHash]
  ) async throws(MissionError) -> MissionContent

  /// Acquires a lock by name; `nil` if another process has it.
  func lock(_ name: LockName) throws(MissionError) -> FileLock?

  /// Acquires a lock together with all others that share it; `nil` if one owner has it alone.
  func share(_ name: LockName) throws(MissionError) -> FileLock?

  /// Removes unneeded files from the folders. It calls `needed` after it has listed the folders,
  /// because a download records files before it creates them.
  func collect(
    needed: @escaping @Sendable () async throws(MissionError) -> NeededFiles
  ) async throws(MissionError) -> Int
}

extension MissionFiles {
  /// Returns true if complete content is unchanged, without reports of progress.
  public func isIntact(_ content: StoredContent) async throws(MissionError) -> Bool {
    try await isIntact(content, reading: nil)
  }
}

/// A content, identified by the hash.
public struct StoredContent: Sendable, Hashable {
  public var hash: ContentHash
  /// The size in bytes.
  public var size: Int64

  public init(hash: ContentHash, size: Int64) {
    self.hash = hash
    self.size = size
  }
}

/// A part of complete content.
public struct StoredPart: Sendable, Equatable {
  public var content: StoredContent
  /// The offset in bytes.
  public var offset: Int64
  /// The length in bytes.
  public var length: Int
  /// The hash of the part.
  public var hash: ContentHash

  public init(content: StoredContent, offset: Int64, length: Int, hash: ContentHash) {
    self.content = content
    self.offset = offset
    self.length = length
    self.hash = hash
  }
}

/// The folder of a version, to be built.
public struct BundlePlan: Sendable, Equatable {
  public struct File: Sendable, Equatable {
    /// The path as in the manifest.
    public var path: String
    public var content: StoredContent

    public init(path: String, content: StoredContent) {
      self.path = path
      self.content = content
    }
  }

  public var mission: MissionID
  public var version: Int64
  public var files: [File]

  public init(mission: MissionID, version: Int64, files: [File]) {
    self.mission = mission
    self.version = version
    self.files = files
  }
}

/// The files in rows of the mission store.
public struct NeededFiles: Sendable, Equatable {
  public var objects: Set<ContentHash> = []
  public var partials: Set<ContentHash> = []
  public var bundles: Set<MissionVersion> = []

  public init() {}
}

/// A version of a mission.
public struct MissionVersion: Sendable, Hashable, Comparable {
  public var mission: MissionID
  public var version: Int64

  public init(_ mission: MissionID, _ version: Int64) {
    self.mission = mission
    self.version = version
  }

  public static func < (left: Self, right: Self) -> Bool {
    (left.mission, left.version) < (right.mission, right.version)
  }
}

/// An activity that only one process at a time may do, or that several may share.
public enum LockName: Sendable, Hashable {
  /// Fetch, put in use or remove this mission.
  case mission(MissionID)
  /// Fetch this content.
  case content(ContentHash)
  /// Read this mission's files (shared), or remove them since nobody reads them (alone).
  case use(MissionID)
}
