import FerryProtocol

/// The rows of missions on this device (seed rows S4.2, S4.4, S4.5 and S4.9). Each call is one
/// transaction: a process killed at any moment leaves the rows before or after it.
public protocol MissionStore: Sendable {
  // MARK: Missions

  /// Every version that was asked for or is complete, in the order of asking.
  func missions() async throws(MissionError) -> [MissionRow]

  /// Writes the row of a version that somebody asks for: incomplete, before anything is fetched.
  /// Another version of the mission that was never completed gives way to it, and with it how an
  /// earlier attempt ended. The same version again keeps its row, unless it has another manifest:
  /// then it is one of its own, beside the one that is complete. `at`: milliseconds since 1970.
  func add(_ record: MissionRecord, at: Int64) async throws(MissionError) -> MissionRow

  /// Notes where an incomplete version stands, and why. Answers whether its row is there.
  @discardableResult
  func setState(
    _ state: MissionState, reason: MissionError?, of version: MissionVersion
  ) async throws(MissionError) -> Bool

  /// Notes how far an incomplete version is.
  func setProgress(
    bytesDone: Int64, itemsDone: Int64, of version: MissionVersion
  ) async throws(MissionError)

  /// Keeps the manifest of an incomplete version, and writes a row for each of its items.
  func setManifest(
    _ document: [UInt8], _ manifest: MissionManifest, of version: MissionVersion
  ) async throws(MissionError)

  /// The manifest's document; `nil` before it was fetched.
  func manifest(of version: MissionVersion) async throws(MissionError) -> [UInt8]?

  /// Makes a version complete and puts it in use. Its content is on the disk from here on.
  func complete(_ version: MissionVersion, at: Int64) async throws(MissionError)

  /// Removes a version's rows, and notes how it ended where `ending` says so. Answers with the
  /// content that no row speaks of any more, which is forgotten as well.
  func remove(
    _ version: MissionVersion, ending: MissionEnding?
  ) async throws(MissionError) -> [ContentHash]

  /// How missions ended that failed or were cancelled, until they are asked for again.
  func endings() async throws(MissionError) -> [MissionEnding]

  /// Forgets how a mission ended.
  func forgetEnding(of mission: MissionID) async throws(MissionError)

  // MARK: Files

  /// Rows of a version's items, in the manifest's order.
  func files(of version: MissionVersion) async throws(MissionError) -> [MissionFileRow]

  /// The row of one item.
  func file(_ path: String, of version: MissionVersion) async throws(MissionError)
    -> MissionFileRow?

  /// The item of a version in use that has this original address; of several, the one that came
  /// last.
  func file(url: String) async throws(MissionError) -> MissionFileRow?

  // MARK: Content

  /// Which parts of content that is being fetched are there; `nil` where nothing is.
  func chunkMap(
    of hash: ContentHash, chunkCount: Int
  ) async throws(MissionError) -> ChunkMap?

  /// Keeps which parts are there.
  func setChunkMap(_ map: ChunkMap, of hash: ContentHash) async throws(MissionError)

  /// Forgets which parts are there.
  func removeChunkMap(of hash: ContentHash) async throws(MissionError)

  /// Content is complete: notes it, its chunks, and in the rows of items that have it where they
  /// lie and when that was.
  func addObject(
    _ object: ObjectRow, chunkSize: Int64, chunks: [ContentHash], path: String?
  ) async throws(MissionError)

  /// What is known of complete content; `nil` where there is none.
  func object(_ hash: ContentHash) async throws(MissionError) -> ObjectRow?

  /// Complete content turned out to be damaged or missing.
  func removeObject(_ hash: ContentHash) async throws(MissionError)

  /// Complete content that has a chunk.
  func part(_ chunk: ContentHash) async throws(MissionError) -> StoredPart?

  /// The hashes of complete content's chunks, and the bytes of each but the last; none where only
  /// the whole is known.
  func chunks(of hash: ContentHash) async throws(MissionError) -> (size: Int64, [ContentHash])

  /// What is known of the content of a version's items, each content once.
  func contents(of version: MissionVersion) async throws(MissionError) -> [ContentRow]

  /// Forgets content that no item's row speaks of, and answers with what they do speak of.
  func needed() async throws(MissionError) -> NeededFiles

  // MARK: Trust

  /// Public keys whose signatures over manifests count.
  func signers() async throws(MissionError) -> [[UInt8]]

  /// From now on this key's signatures count, and no other's.
  func trust(_ signer: [UInt8], at: Int64) async throws(MissionError)

  /// Trusts this key where none is trusted yet. Answers with the keys that count from now on.
  func trustFirst(_ signer: [UInt8], at: Int64) async throws(MissionError) -> [[UInt8]]

  // MARK: Others

  /// A setting of the store; `nil` where it was never made.
  func setting(_ name: String) async throws(MissionError) -> [UInt8]?

  /// Makes a setting unless it was made already. Answers with the one in force.
  func makeSetting(_ name: String, _ value: [UInt8]) async throws(MissionError) -> [UInt8]

  /// Replaces a setting as long as there is neither a mission nor any content. Answers whether.
  func remakeSetting(_ name: String, _ value: [UInt8]) async throws(MissionError) -> Bool

  /// A number that changes when another process has changed the rows.
  func dataVersion() async throws(MissionError) -> Int64
}

/// A version of a mission on this device: all that is needed to go on with it after a restart.
public struct MissionRow: Sendable, Equatable {
  /// As the catalogue had it when it was asked for.
  public var record: MissionRecord
  public var state: MissionState
  /// Why it waits or rests.
  public var reason: MissionError?
  /// Whether all of it was there and passed its check.
  public var isComplete: Bool
  /// Its number in the order in which versions were put in use; `nil` where it is not.
  public var activation: Int64?
  /// Whether this is the version in use.
  public var isActive: Bool
  /// Its number in the order of asking.
  public var asked: Int64
  public var bytesDone: Int64
  public var itemsDone: Int64
  /// Milliseconds since 1970.
  public var askedAt: Int64
  /// Milliseconds since 1970.
  public var completedAt: Int64?
  /// What it is called by here, where the record's version already calls another one: negative.
  public var alias: Int64?

  /// The version that it speaks of, by its name on this device.
  public var version: MissionVersion { MissionVersion(record.id, alias ?? record.version) }
}

/// An item of a version (seed row S4.9).
public struct MissionFileRow: Sendable, Equatable {
  public var version: MissionVersion
  /// Its place in the manifest, from 0.
  public var place: Int
  public var path: String
  public var kind: MissionItemKind
  public var mediaType: String
  public var content: StoredContent
  /// The original address.
  public var url: String?
  /// Where its content lies; `nil` until it does, and where it is sealed.
  public var localPath: String?
  /// When its content was complete, milliseconds since 1970.
  public var completedAt: Int64?
}

/// How a mission ended that is not here.
public struct MissionEnding: Sendable, Equatable {
  public var version: MissionVersion
  /// The version as it was published.
  public var published: Int64
  public var title: String
  /// Failed or cancelled.
  public var state: MissionState
  public var reason: MissionError
  /// Milliseconds since 1970.
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
  /// Whether it is on the disk for sure, and not only in the operating system's memory.
  public var isDurable: Bool
  /// When it was complete, milliseconds since 1970.
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
  /// Where it is complete.
  public var object: ObjectRow?
}
