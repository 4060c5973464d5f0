import FerryProtocol

/// Fetches one file, with the parts of earlier attempts (SPEC.md §20).
public protocol Downloader: Sendable {
  /// Completes the content at ``DownloadJob/partialPath`` and checks the SHA-256, if it is known;
  /// does not fetch the parts in ``DownloadJob/map`` again.
  ///
  /// If you cancel the task, you get ``DownloadError/Kind/cancelled``, and the parts recorded until
  /// then stay.
  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome
}

/// The source of a file.
public enum DownloadSource: Sendable, Equatable {
  /// Content of the server, at the address in the downloader's configuration.
  case blob(ContentHash)
  /// Any http or https address.
  case url(String)
  /// An address from a published manifest. The server and the publishers of the space choose it, so
  /// private addresses are refused unless the app allows them (``MissionOptions``).
  case published(String)
  /// A request with the file as the answer. It may be sent more than once.
  case request(ContentRequest)
}

/// A request with an answer to keep as a file.
public struct ContentRequest: Sendable, Hashable, Codable {
  /// The method in upper case: `GET`, `POST`, …
  public var method: String
  /// The whole address, `http://` or `https://`.
  public var url: String
  /// The header fields, by name. If there are any, no redirect to another origin is followed.
  public var headers: [String: String]
  /// The body, if there is one.
  public var body: [UInt8]?

  public init(
    _ url: String, method: String = "GET", headers: [String: String] = [:], body: [UInt8]? = nil
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }

  /// True if the answer's body is a file that may be requested in parts.
  var isPlain: Bool { method == "GET" && body == nil }
}

extension DownloadSource {
  /// True if the content can be requested in parts, and has the same bytes each time.
  var isFile: Bool {
    if case .request(let request) = self { request.isPlain } else { true }
  }
}

/// One file to fetch.
public struct DownloadJob: Sendable {
  public var source: DownloadSource
  /// Bytes of the whole file; `nil` if they are unknown before the first answer.
  public var size: Int64?
  /// The hash of the whole file; `nil` if it is unknown: the content is not checked.
  public var hash: ContentHash?
  /// The largest accepted size of a file of unknown size, in bytes. No file has more than 4 TiB,
  /// `MissionLimits.itemBytes`.
  public var sizeMax: Int64 = .max
  /// Bytes of each chunk but the last.
  public var chunkSize: Int64
  /// The hashes of the chunks in order; empty if only the hash of the whole file is known.
  public var chunks: [ContentHash]
  /// Bytes of the parts to hash while the content is written, beside the whole; `nil` for none. Only
  /// content without hashes of chunks has such parts.
  public var partSize: Int64?
  /// The path of the fetched bytes, each at its own offset: a sparse file, created if it is absent.
  public var partialPath: String
  /// The encryption of the file; `nil` for none. See ``write(_:at:)``.
  public var seal: ContentSeal?
  /// The parts already here.
  public var map: ChunkMap
  /// Stores the map; called after the map's bytes are in the file.
  public var record: @Sendable (ChunkMap) async throws -> Void
  /// Reserves disk space for so many more bytes; called before they are written, and with 0 now and
  /// then for content of unknown size. Throws if there is too little space.
  public var reserve: @Sendable (Int64) async throws(DownloadError) -> Void = { (_) in }
  /// Finds a chunk in a complete object; it is copied and checked rather than fetched.
  public var reuse: @Sendable (ContentHash) async -> LocalChunk?
  /// Reports a failure during the retries, if no byte has arrived since the one before.
  public var stalled: @Sendable (DownloadError) async -> Void = { _ in }

  public init(
    source: DownloadSource, size: Int64?, hash: ContentHash?, chunkSize: Int64 = 1,
    chunks: [ContentHash] = [], partialPath: String, seal: ContentSeal? = nil,
    map: ChunkMap? = nil,
    record: @escaping @Sendable (ChunkMap) async throws -> Void = { _ in },
    reuse: @escaping @Sendable (ContentHash) async -> LocalChunk? = { _ in nil }
  ) {
    self.source = source
    self.size = size
    self.hash = hash
    self.chunkSize = chunkSize
    self.chunks = chunks
    self.partialPath = partialPath
    self.seal = seal
    self.map = map ?? ChunkMap(chunkCount: chunks.count)
    self.record = record
    self.reuse = reuse
  }
}

/// A chunk's place on this device.
public struct LocalChunk: Sendable, Equatable {
  public var path: String
  /// The chunk's offset in the file, in bytes.
  public var offset: Int64
  /// The length in bytes.
  public var length: Int

  public init(path: String, offset: Int64, length: Int) {
    self.path = path
    self.offset = offset
    self.length = length
  }
}

/// The progress of a file.
public struct DownloadProgress: Sendable, Equatable {
  /// The local bytes; the number never goes back and never exceeds ``bytesTotal``. For a file of
  /// unknown size it goes back if the file is fetched from scratch.
  public var bytesDone: Int64
  /// The bytes of the whole file; `nil` while they are unknown.
  public var bytesTotal: Int64?
  /// The bytes received over the network in this run, discarded ones included.
  public var bytesFetched: Int64

  public init(bytesDone: Int64, bytesTotal: Int64?, bytesFetched: Int64) {
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.bytesFetched = bytesFetched
  }
}

/// The statistics of a completed file.
public struct DownloadOutcome: Sendable, Equatable {
  /// The bytes received over the network in this run.
  public var bytesFetched: Int64
  /// The bytes here already, in the partial file or in other content.
  public var bytesReused: Int64
  /// The bytes of the file.
  public var size: Int64
  /// The file's SHA-256; `nil` if it was neither given nor computed.
  public var hash: ContentHash?
  /// The SHA-256 of each part of ``DownloadJob/partSize`` bytes; empty if one part is the whole, or
  /// if they were not computed.
  public var parts: [ContentHash]

  public init(
    bytesFetched: Int64, bytesReused: Int64, size: Int64 = 0, hash: ContentHash? = nil,
    parts: [ContentHash] = []
  ) {
    self.bytesFetched = bytesFetched
    self.bytesReused = bytesReused
    self.size = size
    self.hash = hash
    self.parts = parts
  }
}

/// The reason why a file could not be fetched.
public struct DownloadError: Error, Sendable, Equatable, CustomStringConvertible {
  public enum Kind: Sendable, Equatable {
    /// No connection, or a broken one that was not restored.
    case offline
    /// The server answered with this status.
    case server(Int)
    /// The content differs from the known hash or size: the number of the chunk, or `nil` if the
    /// whole is wrong.
    case wrongContent(chunk: Int?)
    /// The answer does not fit the request: a wrong range or length, an unrequested encoding,
    /// endless redirects.
    case wrongAnswer
    /// There is no room on the disk.
    case diskFull
    /// The file could not be read or written.
    case file
    /// The task was cancelled.
    case cancelled
    /// The server's file has changed since the transfer began.
    case changed
    /// It waits for another download.
    case waiting
    /// A download that comes first failed, was cancelled or does not exist.
    case dependency
    /// Another process or download uses the queue or the path.
    case busy
  }

  public var kind: Kind
  /// A description in one sentence.
  public var message: String
  /// True if the same call may succeed later without any change.
  public var isTransient: Bool

  /// Creates an error; with `nil` as `isTransient` it has the usual value for the kind.
  public init(_ kind: Kind, _ message: String, isTransient: Bool? = nil) {
    self.kind = kind
    self.message = message
    self.isTransient = isTransient ?? kind.isTransient
  }

  public var description: String { message }
}

extension DownloadError.Kind {
  /// True if a failure of this kind usually passes by itself.
  public var isTransient: Bool {
    switch self {
    case .offline, .changed, .waiting, .busy: true
    case .server(let status): status == 408 || status == 429 || status >= 500
    case .wrongContent, .wrongAnswer, .diskFull, .file, .cancelled, .dependency: false
    }
  }
}
