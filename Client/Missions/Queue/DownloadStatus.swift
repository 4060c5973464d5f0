import FerryNetworking
import FerryProtocol

/// The name of a download in a queue.
public struct DownloadID: Sendable, Hashable, Comparable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  public let value: String

  /// Creates a name of any characters.
  public init(_ value: String) { self.value = value }

  public init(stringLiteral value: String) { self.init(value) }

  /// Returns a new, unique name.
  public static func random() -> DownloadID {
    let words = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }
    return DownloadID(words.joined(separator: "-"))
  }

  public var description: String { value }

  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

/// The state of a download and the progress.
public struct DownloadStatus: Sendable, Equatable {
  public var state: DownloadState = .ready
  /// The reason why it waits, is paused or failed.
  public var reason: DownloadError?
  public var progress = DownloadProgress(bytesDone: 0, bytesTotal: nil, bytesFetched: 0)
  /// Bytes a second over the last seconds; `nil` while it is unknown.
  public var bytesPerSecond: Double?

  /// The progress from 0 to 1; `nil` while the size is unknown.
  public var fraction: Double? {
    progress.bytesTotal.map { $0 == 0 ? 1 : Double(progress.bytesDone) / Double($0) }
  }
}

/// The file of a completed download.
public struct DownloadedFile: Sendable, Equatable {
  public var path: String
  /// The size in bytes.
  public var size: Int64
  /// The SHA-256 of the content; `nil` if the downloader did not compute it.
  public var hash: ContentHash?
  /// The hashes of the content's parts, if the queue needs them.
  var parts: [ContentHash] = []

  public init(path: String, size: Int64, hash: ContentHash? = nil) {
    self.path = path
    self.size = size
    self.hash = hash
  }

  /// The facts known since the content was written; `nil` if the downloader did not compute them.
  var facts: ContentFacts? { hash.map { ContentFacts(size: size, hash: $0, parts: parts) } }
}

/// The options of a queue.
public struct DownloadQueueOptions: Sendable {
  /// The most downloads fetched at once.
  public var downloadsAtOnce = 3
  /// Pauses between attempts after temporary failures; by default the attempts never run out.
  public var pauses = RetryPolicy(delayBase: .seconds(1), delayMax: .seconds(30), attemptsMax: nil)
  /// The longest silence of a server before the request is repeated.
  public var silence: Duration = .seconds(30)
  /// True if downloads of an earlier process continue at once.
  public var startsAtOnce = true

  public init() {}
}
