import FerryProtocol

/// The rows of missions on this device (SPEC.md §21). Each call is one transaction: a process
/// killed at any moment leaves the rows before or after it.
public protocol MissionStore: Sendable {
  // MARK: Missions

  /// Returns every requested or complete version, in the order of requests.
  func missions() async throws(MissionError) -> [MissionRow]

  /// Inserts the row of a requested version: incomplete, before any download.
  ///
  /// It replaces another incomplete version of the mission, and the end of an earlier attempt. A
  /// repeated request of a version keeps the row, unless the manifest differs. Then a new row is
  /// added beside the complete version. `at`: milliseconds since 1970.
  func add(_ record: MissionRecord, at: Int64) async throws(MissionError) -> MissionRow

  /// Stores the state of an incomplete version, with the reason. Returns true if the row exists.
  @discardableResult
  func setState(
    _ state: MissionState, reason: MissionError?, of version: MissionVersion
  ) async throws(MissionError) -> Bool

  /// Stores the progress of an incomplete version.
  func setProgress(
    bytesDone: Int64, itemsDone: Int64, of version: MissionVersion
  ) async throws(MissionError)

  /// Stores the manifest of an incomplete version, and inserts a row for each item.
  func setManifest(
    _ document: [UInt8], _ manifest: MissionManifest, of version: MissionVersion
  ) async throws(MissionError)

  /// Returns the manifest's document; `nil` before it was fetched.
  func manifest(of version: MissionVersion) async throws(MissionError) -> [UInt8]?

  /// Marks a version as complete and puts it in use. The content is on the disk before this call.
  func complete(_ version: MissionVersion, at: Int64) async throws(MissionError)

  /// Stores the damage found by a check of a complete version; `nil` removes it.
  func setDamage(
    _ damage: MissionError?, of version: MissionVersion
  ) async throws(MissionError)

  /// Removes a version's rows, and stores the end if `ending` is given. Removes and returns the
  /// content that no other row refers to.
  func remove(
    _ version: MissionVersion, ending: MissionEnding?
  ) async throws(MissionError) -> [ContentHash]

  /// Returns the ends of failed or cancelled missions, until they are requested again.
  func endings() async throws(MissionError) -> [MissionEnding]

  /// Removes the end of a mission.
  func forgetEnding(of mission: MissionID) async throws(MissionError)

  // MARK: Files

  /// Returns the rows of a version's items, in the manifest's order.
  func files(of version: MissionVersion) async throws(MissionError) -> [MissionFileRow]

  /// Returns the row of one item.
  func file(_ path: String, of version: MissionVersion) async throws(MissionError)
    -> MissionFileRow?

  /// Returns the item of a version in use with this original address; of several, the one completed
  /// last.
  func file(url: String) async throws(MissionError) -> MissionFileRow?

  // MARK: Content

  /// Returns the fetched parts of content; `nil` if there are none.
  func chunkMap(
    of hash: ContentHash, chunkCount: Int
  ) async throws(MissionError) -> ChunkMap?

  /// Stores the fetched parts.
  func setChunkMap(_ map: ChunkMap, of hash: ContentHash) async throws(MissionError)

  /// Removes the record of the fetched parts.
  func removeChunkMap(of hash: ContentHash) async throws(MissionError)

  /// Adds complete content with the chunks, and stores the path and time in the rows of the
  /// content's items.
  func addObject(
    _ object: ObjectRow, chunkSize: Int64, chunks: [ContentHash], path: String?
  ) async throws(MissionError)

  /// Returns the facts about complete content; `nil` if there is none.
  func object(_ hash: ContentHash) async throws(MissionError) -> ObjectRow?

  /// Returns true if an item's row refers to this content, complete or not.
  func refers(to hash: ContentHash) async throws(MissionError) -> Bool

  /// Removes damaged or missing complete content.
  func removeObject(_ hash: ContentHash) async throws(MissionError)

  /// Returns a part of complete content with a chunk's bytes.
  func part(_ chunk: ContentHash) async throws(MissionError) -> StoredPart?

  /// Returns the hashes of complete content's chunks, and the bytes of each but the last. There are
  /// none if only the hash of the whole is known.
  func chunks(of hash: ContentHash) async throws(MissionError) -> (size: Int64, [ContentHash])

  /// Returns the facts about the content of a version's items, without duplicates.
  func contents(of version: MissionVersion) async throws(MissionError) -> [ContentRow]

  /// Removes content that no item's row refers to, and returns the content that rows refer to.
  func needed() async throws(MissionError) -> NeededFiles

  // MARK: Trust

  /// Returns the trusted public keys of manifests.
  func signers() async throws(MissionError) -> [[UInt8]]

  /// Trusts this key and no other from now on.
  func trust(_ signer: [UInt8], at: Int64) async throws(MissionError)

  /// Trusts this key if none is trusted yet. Returns the keys now trusted.
  func trustFirst(_ signer: [UInt8], at: Int64) async throws(MissionError) -> [[UInt8]]

  // MARK: Others

  /// Returns a setting of the store; `nil` if it was never stored.
  func setting(_ name: String) async throws(MissionError) -> [UInt8]?

  /// Stores a setting unless it exists. Returns the one in force.
  func makeSetting(_ name: String, _ value: [UInt8]) async throws(MissionError) -> [UInt8]

  /// Replaces a setting if there is neither a mission nor any content. Returns true if it did.
  func remakeSetting(_ name: String, _ value: [UInt8]) async throws(MissionError) -> Bool

  /// Returns a number that changes when another process has changed the rows.
  func dataVersion() async throws(MissionError) -> Int64
}

/// A version of a mission on this device, with all facts to continue it after a restart.
public struct MissionRow: Sendable, Equatable {
  /// The catalogue's record at the time of the request.
  public var record: MissionRecord
  public var state: MissionState
  /// The reason for a wait or a pause; of a complete version, the damage found.
  public var reason: MissionError?
  /// True if all of it is here and passed the check.
  public var isComplete: Bool
  /// The number in the order of activations; `nil` before the version is put in use.
  public var activation: Int64?
  /// True if this is the version in use.
  public var isActive: Bool
  /// The number in the order of requests.
  public var asked: Int64
  public var bytesDone: Int64
  public var itemsDone: Int64
  /// The time of the request, in milliseconds since 1970.
  public var askedAt: Int64
  /// The time of completion, in milliseconds since 1970.
  public var completedAt: Int64?
  /// The name on this device if another version has the record's number: negative.
  public var alias: Int64?

  /// The version, by the local name.
  public var version: MissionVersion { MissionVersion(record.id, alias ?? record.version) }

  /// True if a check found the content damaged, and nothing has repaired it since.
  var isDamaged: Bool { isComplete && reason?.kind == .damaged }
}

/// An item of a version (SPEC.md §19).
public struct MissionFileRow: Sendable, Equatable {
  public var version: MissionVersion
  /// The place in the manifest, from 0.
  public var place: Int
  public var path: String
  public var kind: MissionItemKind
  public var mediaType: String
  public var content: StoredContent
  /// The original address.
  public var url: String?
  /// The path of the content; `nil` until it is complete, and if it is sealed.
  public var localPath: String?
  /// When the content was completed, in milliseconds since 1970.
  public var completedAt: Int64?
}

/// The end of a mission that is not here.
public struct MissionEnding: Sendable, Equatable {
  public var version: MissionVersion
  /// The version as it was published.
  public var published: Int64
  public var title: String
  /// Failed or cancelled.
  public var state: MissionState
  public var reason: MissionError
  /// The time, in milliseconds since 1970.
  public var at: Int64

  public init(
    version: MissionVersion, published: Int64? = nil, title: String, state: MissionState,
    reason: MissionError, at: Int64
  ) {
    self.version = version
    self.published = published ?? version.version
    self.title = title
    self.state = state
    self.reason = reason
    self.at = at
  }
}

/// Complete content.
public struct ObjectRow: Sendable, Equatable {
  public var content: StoredContent
  /// True if it is certainly on the disk, and not only in the operating system's memory.
  public var isDurable: Bool
  /// When it was completed, in milliseconds since 1970.
  public var at: Int64

  public init(content: StoredContent, isDurable: Bool, at: Int64) {
    self.content = content
    self.isDurable = isDurable
    self.at = at
  }
}

/// Content of an item, complete or not.
public struct ContentRow: Sendable, Equatable {
  public var content: StoredContent
  /// The complete content, if there is one.
  public var object: ObjectRow?
}
