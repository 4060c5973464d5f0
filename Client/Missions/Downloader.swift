import FerryProtocol

/// Fetches one file, with the parts of earlier attempts (SPEC.md §20).
public protocol Downloader: Sendable {
  /// Completes the content at ``DownloadJob/partialPath`` and checks its SHA-256; does not fetch
  /// the parts in ``DownloadJob/map`` again.
  ///
  /// A caller that cancels its task gets ``DownloadError/Kind/cancelled``, and keeps the parts
  /// recorded until then.
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
}

/// One file to fetch.
public struct DownloadJob: Sendable {
  public var source: DownloadSource
  /// Bytes of the whole file.
  public var size: Int64
  /// The hash of the whole file.
  public var hash: ContentHash
  /// Bytes of each chunk but the last.
  public var chunkSize: Int64
  /// The hashes of the chunks in order; empty if only the hash of the whole file is known.
  public var chunks: [ContentHash]
  /// The path of the fetched bytes, each at its own offset: a sparse file, created if it is absent.
  public var partialPath: String
  /// The encryption of that file; `nil` for none.
  public var cipher: PartialCipher?
  /// The parts that are here already.
  public var map: ChunkMap
  /// Stores the map; called after its bytes are in the file.
  public var record: @Sendable (ChunkMap) async throws -> Void
  /// Finds a chunk in a complete object, which is copied and checked rather than fetched.
  public var reuse: @Sendable (ContentHash) async -> LocalChunk?
  /// Reports a failure during the retries, if no byte has arrived since the one before.
  public var stalled: @Sendable (DownloadError) async -> Void = { _ in }

  public init(
    source: DownloadSource, size: Int64, hash: ContentHash, chunkSize: Int64,
    chunks: [ContentHash] = [], partialPath: String, cipher: PartialCipher? = nil,
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
    self.cipher = cipher
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
  /// The bytes that are here; the number never goes back and never exceeds ``bytesTotal``.
  public var bytesDone: Int64
  public var bytesTotal: Int64
  /// The bytes received over the network in this run, discarded ones included.
  public var bytesFetched: Int64

  public init(bytesDone: Int64, bytesTotal: Int64, bytesFetched: Int64) {
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.bytesFetched = bytesFetched
  }
}

/// The statistics of a completed file.
public struct DownloadOutcome: Sendable, Equatable {
  /// The bytes received over the network in this run.
  public var bytesFetched: Int64
  /// The bytes that were here already, in the partial file or in other content.
  public var bytesReused: Int64

  public init(bytesFetched: Int64, bytesReused: Int64) {
    self.bytesFetched = bytesFetched
    self.bytesReused = bytesReused
  }
}

/// The reason why a file could not be fetched.
public struct DownloadError: Error, Sendable, Equatable, CustomStringConvertible {
  public enum Kind: Sendable, Equatable {
    /// No connection, or one that broke and was not restored.
    case offline
    /// The server answered with this status.
    case server(Int)
    /// The content differs from the manifest: the number of the chunk, or `nil` if the whole is
    /// wrong.
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
  }

  public var kind: Kind
  /// A description in one sentence.
  public var message: String
  /// Whether the same call may succeed later without any change.
  public var isTransient: Bool

  /// Creates an error; with `nil` as `isTransient` it takes the usual value for the kind.
  public init(_ kind: Kind, _ message: String, isTransient: Bool? = nil) {
    self.kind = kind
    self.message = message
    self.isTransient = isTransient ?? kind.isTransient
  }

  public var description: String { message }
}

extension DownloadError.Kind {
  /// Whether a failure of this kind usually passes by itself.
  public var isTransient: Bool {
    switch self {
    case .offline, .changed: true
    case .server(let status): status == 408 || status == 429 || status >= 500
    case .wrongContent, .wrongAnswer, .diskFull, .file, .cancelled: false
    }
  }
}
