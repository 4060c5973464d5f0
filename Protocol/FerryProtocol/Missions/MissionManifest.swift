/// The name of a mission in a space: 1 to 128 characters of `A–Z a–z 0–9 . _ -`, the first one a
/// letter or digit.
public struct MissionID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as in a URL, and as the catalogue's record identifier.
  public let value: String

  /// Creates a name; `nil` if it breaks the rule.
  public init?(_ value: String) {
    let bytes = value.utf8
    guard (1...128).contains(bytes.count), let first = bytes.first, Self.isAlphanumeric(first),
      bytes.allSatisfy({ Self.isAlphanumeric($0) || $0 == 0x2E || $0 == 0x5F || $0 == 0x2D })
    else { return nil }
    self.value = value
  }

  private init(unchecked value: String) { self.value = value }

  /// Stands for a name that is read next.
  static let blank = MissionID(unchecked: "-")

  public var description: String { value }

  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
  }
}

/// The kind of an item for the app (SPEC.md §19).
public enum MissionItemKind: String, Sendable, CaseIterable {
  case video, audio, image, archive
  /// The result of a request, which the request cache returns.
  case json
  /// Anything else.
  case file
}

/// One file of a mission.
public struct MissionItem: Sendable, Equatable {
  /// The path of the file in the bundle, and the item's name in the mission; see ``MissionPath``.
  public var path: String
  public var kind: MissionItemKind
  /// RFC 6838, such as `video/mp4`.
  public var mediaType: String
  /// Bytes.
  public var size: Int64
  /// The hash of the whole file.
  public var hash: ContentHash
  /// The hashes of parts of ``MissionManifest/chunkSize`` bytes, the last one shorter. Empty if one
  /// part is the whole file, or if only the whole was hashed (a foreign file).
  public var chunks: [ContentHash]
  /// The address of the content for apps: image and request caches answer it. If the server does
  /// not have the content, it is fetched from there.
  public var url: String?
  /// True if the server has the content, as `/v1/blobs/{sha256}`.
  public var isHosted: Bool
  /// Paths of items before this one.
  public var after: [String]

  public init(
    path: String, kind: MissionItemKind = .file, mediaType: String = "application/octet-stream",
    size: Int64, hash: ContentHash, chunks: [ContentHash] = [], url: String? = nil,
    isHosted: Bool = true, after: [String] = []
  ) {
    self.path = path
    self.kind = kind
    self.mediaType = mediaType
    self.size = size
    self.hash = hash
    self.chunks = chunks
    self.url = url
    self.isHosted = isHosted
    self.after = after
  }
}

/// The content of a mission: a separate document, named by SHA-256 and signed (SPEC.md §19).
public struct MissionManifest: Sendable, Equatable {
  /// The default size of a chunk, in bytes.
  public static let chunkSizeDefault: Int64 = 4 << 20

  public var space: SpaceName
  public var id: MissionID
  /// 1, 2, 3, …: each time it is published.
  public var version: Int64
  public var title: String
  public var summary: String
  /// Missions with a higher one come first.
  public var priority: Int64
  /// Missions before this one.
  public var after: [MissionID]
  /// Bytes of a chunk: a power of two from 64 KiB to 64 MiB.
  public var chunkSize: Int64
  /// In the publisher's order.
  public var items: [MissionItem]
  /// Makes the mission a bundle (SPEC.md §31); `nil` for an ordinary mission.
  public var bundle: BundleDeclaration?

  public init(
    space: SpaceName, id: MissionID, version: Int64, title: String = "", summary: String = "",
    priority: Int64 = 0, after: [MissionID] = [],
    chunkSize: Int64 = MissionManifest.chunkSizeDefault, items: [MissionItem],
    bundle: BundleDeclaration? = nil
  ) {
    self.space = space
    self.id = id
    self.version = version
    self.title = title
    self.summary = summary
    self.priority = priority
    self.after = after
    self.chunkSize = chunkSize
    self.items = items
    self.bundle = bundle
  }

  /// Bytes of all items together; saturates, since an unchecked manifest may contain any size.
  public var size: Int64 {
    items.reduce(0) { sum, item in
      let (next, overflows) = sum.addingReportingOverflow(max(0, item.size))
      return overflows ? .max : next
    }
  }

  /// Returns the signed bytes: the document's own bytes behind a line with the purpose. So a
  /// signature over other data can never pass for one over a manifest.
  package static func signedMessage(_ document: [UInt8]) -> [UInt8] {
    Array("ferry mission manifest 1\n".utf8) + document
  }
}

/// The limits of a manifest.
public struct MissionLimits: Sendable, Equatable {
  /// Bytes of a manifest.
  public var manifestBytes = 64 << 20
  /// Missions in force in a space; each version of a bundle counts.
  public var missions = 10_000
  /// Items of a mission.
  public var items = 100_000
  /// Bytes of an item: 4 TiB.
  public var itemBytes: Int64 = 1 << 42
  /// Hashes of chunks in a manifest.
  public var chunks = 1 << 20
  /// Bytes of a chunk.
  public var chunkBytes: ClosedRange<Int64> = (64 << 10)...(64 << 20)
  /// Bytes of a title.
  public var titleBytes = 1 << 10
  /// Bytes of a summary.
  public var summaryBytes = 16 << 10
  /// Bytes of an address.
  public var urlBytes = 4 << 10
  /// Priorities, of which a higher one comes first.
  public var priority: ClosedRange<Int64> = -1_000_000...1_000_000
  /// Missions or items to wait for.
  public var after = 1_000

  public init() {}

  public static let standard = MissionLimits()
}
