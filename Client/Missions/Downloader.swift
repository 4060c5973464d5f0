import FerryProtocol

/// Fetches one file, whatever became of earlier attempts (seed rows S4.2 and S5.3).
public protocol Downloader: Sendable {
  /// Brings ``DownloadJob/partialPath`` to the whole content and checks its SHA-256; what is there
  /// already by ``DownloadJob/map`` is not fetched again.
  ///
  /// A caller that cancels its task gets ``DownloadError/Kind/cancelled``, and keeps what was
  /// recorded until then.
  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome
}

/// Where a file comes from.
public enum DownloadSource: Sendable, Equatable {
  /// Content that the server has, at the address that the downloader was configured with.
  case blob(ContentHash)
  /// Any http or https address.
  case url(String)
}

/// One file to fetch.
public struct DownloadJob: Sendable {
  public var source: DownloadSource
  /// Bytes of the whole file.
  public var size: Int64
  /// Of the whole file.
  public var hash: ContentHash
  /// Bytes of each chunk but the last.
  public var chunkSize: Int64
  /// In order; empty where only the whole is known.
  public var chunks: [ContentHash]
  /// Where the bytes go, each at its own offset: a sparse file, made where there is none.
  public var partialPath: String
  /// How the bytes stand in that file; `nil` for as they are.
  public var cipher: PartialCipher?
  /// What is there already.
  public var map: ChunkMap
  /// Keeps the map; called after the bytes that it speaks of are in the file.
  public var record: @Sendable (ChunkMap) async throws -> Void
  /// Finds a chunk in a complete object, which is copied and checked rather than fetched.
  public var reuse: @Sendable (ContentHash) async -> LocalChunk?
  /// Told of a failure where nothing has come since the one before, while it is tried again.
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

/// Where a chunk lies on this device.
public struct LocalChunk: Sendable, Equatable {
  public var path: String
  /// Bytes from the start of the file.
  public var offset: Int64
  /// Bytes.
  public var length: Int

  public init(path: String, offset: Int64, length: Int) {
    self.path = path
    self.offset = offset
    self.length = length
  }
}

/// How far a file is.
public struct DownloadProgress: Sendable, Equatable {
  /// Bytes that are there; it never goes back and never exceeds ``bytesTotal``.
  public var bytesDone: Int64
  public var bytesTotal: Int64
  /// Bytes that came over the network in this run, those that had to be thrown away included.
  public var bytesFetched: Int64

  public init(bytesDone: Int64, bytesTotal: Int64, bytesFetched: Int64) {
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.bytesFetched = bytesFetched
  }
}

/// How a file was brought to its end.
public struct DownloadOutcome: Sendable, Equatable {
  /// Bytes that came over the network in this run.
  public var bytesFetched: Int64
  /// Bytes that were there already, in the partial file or in other content.
  public var bytesReused: Int64

  public init(bytesFetched: Int64, bytesReused: Int64) {
    self.bytesFetched = bytesFetched
    self.bytesReused = bytesReused
  }
}

/// Why a file could not be fetched.
public struct DownloadError: Error, Sendable, Equatable, CustomStringConvertible {
  public enum Kind: Sendable, Equatable {
    /// No connection, or one that broke and would not come back.
    case offline
    /// The server answered with this status.
    case server(Int)
    /// The content is not what the manifest says: the number of the chunk, or `nil` where the
    /// whole is wrong.
    case wrongContent(chunk: Int?)
    /// The answer is not one to such a request: a wrong range or length, an encoding nobody asked
    /// for, redirects without end.
    case wrongAnswer
    /// There is no room on the disk.
    case diskFull
    /// The file could not be read or written.
    case file
    /// The task was cancelled.
    case cancelled
    /// The server's file is another one now than when the transfer began.
    case changed
  }

  public var kind: Kind
  /// What happened, in a sentence.
  public var message: String
  /// Whether the same may well succeed later without anybody doing anything.
  public var isTransient: Bool

  /// `isTransient`: `nil` takes what is usual for the kind.
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
