import FerryProtocol

/// Where the content of missions lies on this device (seed row S4.8): a place for each content by
/// its hash, and for each version of a mission a folder in which its items have their names.
public protocol MissionFiles: Sendable {
  /// Whether content is encrypted at rest; then there are no folders of versions.
  var isSealed: Bool { get }

  /// What tells later whether the same key is given: to be kept.
  func sealProof() -> [UInt8]

  /// Whether what is kept was made with the same key, or with none where there is none.
  func accepts(sealProof: [UInt8]) -> Bool

  /// Where content is put together while it is being fetched.
  func partialPath(of hash: ContentHash) -> String

  /// How content stands there; `nil` for as it is.
  func partialCipher(of hash: ContentHash) -> PartialCipher?

  /// Where a content's bytes lie as they are, once it is complete; sealed content has no such path.
  func plainPath(of hash: ContentHash) -> String?

  /// Where the folder of a version is, or will be.
  func bundlePath(of mission: MissionID, version: Int64) -> String

  /// Bytes that may be written before the disk is full.
  func freeBytes() async throws(MissionError) -> Int64

  /// Whether complete content is there, by its size.
  func has(_ content: StoredContent) async throws(MissionError) -> Bool

  /// Whether complete content is there and every byte of it is what it was; it is read whole.
  ///
  /// - Parameter reading: is told the bytes that were read so far.
  /// - Throws: ``MissionError/Kind/cancelled`` soon after its task was cancelled.
  func isIntact(
    _ content: StoredContent, reading: (@Sendable (Int64) -> Void)?
  ) async throws(MissionError) -> Bool

  /// Makes the content that was put together, and whose hash was checked, complete content.
  func adopt(_ content: StoredContent) async throws(MissionError)

  /// All bytes of content that was put together, of `limit` at most.
  func partialBytes(of hash: ContentHash, limit: Int64) async throws(MissionError) -> [UInt8]

  /// Copies a part of complete content into one that is being put together; its bytes are checked.
  /// Answers whether they were what they should be.
  func copy(_ part: StoredPart, to hash: ContentHash, at offset: Int64) async throws(MissionError)
    -> Bool

  /// Has the operating system write complete content to the disk, names included.
  func sync(_ hashes: [ContentHash]) async throws(MissionError)

  /// Builds the folder of a version of complete content, checks it, writes it to the disk, and
  /// moves it to its place whole. Does nothing where content is sealed.
  func build(_ bundle: BundlePlan) async throws(MissionError)

  /// How the folder of a version differs from what it should be; `nil` where it does not. Files
  /// that are the content itself by another name are not read.
  func fault(in bundle: BundlePlan) async throws(MissionError) -> MissionError?

  /// Makes the folder of a version right again, one file after another: each is the old or the new
  /// one at any moment.
  func mend(_ bundle: BundlePlan) async throws(MissionError)

  /// Removes the folder of a version, if it is there.
  func removeBundle(of mission: MissionID, version: Int64) async throws(MissionError)

  /// Removes complete content, if it is there.
  func removeObject(_ hash: ContentHash) async throws(MissionError)

  /// Removes what was put together of content, if there is something.
  func removePartial(_ hash: ContentHash) async throws(MissionError)

  /// Opens complete content for reading. `parts`: hashes of its parts of `partSize` bytes, which
  /// are checked when they are read; without them the whole is, once.
  func open(
    _ content: StoredContent, partSize: Int64, parts: [ContentHash]
  ) async throws(MissionError) -> MissionContent

  /// Takes a lock by name; `nil` where somebody has it.
  func lock(_ name: LockName) throws(MissionError) -> FileLock?

  /// Removes what lies in the folders and nobody needs. `needed` is asked after the folders were
  /// looked through, since what is fetched meanwhile is noted before it is there.
  func collect(
    needed: @escaping @Sendable () async throws(MissionError) -> NeededFiles
  ) async throws(MissionError) -> Int
}

extension MissionFiles {
  /// The same, without a word meanwhile.
  public func isIntact(_ content: StoredContent) async throws(MissionError) -> Bool {
    try await isIntact(content, reading: nil)
  }
}

/// Content by its hash.
public struct StoredContent: Sendable, Hashable {
  public var hash: ContentHash
  /// Bytes.
  public var size: Int64

  public init(hash: ContentHash, size: Int64) {
    self.hash = hash
    self.size = size
  }
}

/// A part of complete content.
public struct StoredPart: Sendable, Equatable {
  public var content: StoredContent
  /// Bytes from its start.
  public var offset: Int64
  /// Bytes.
  public var length: Int
  /// Of the part.
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
    /// As in the manifest.
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

/// What rows of the mission store speak of.
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

/// What one process at a time may do.
public enum LockName: Sendable, Hashable {
  /// Fetch, put in use or remove this mission.
  case mission(MissionID)
  /// Put this content together.
  case content(ContentHash)
}
