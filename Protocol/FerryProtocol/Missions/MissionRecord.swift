import FerryPlatform

/// A mission as the catalogue has it: a record of the reserved table `ferry_missions`, which
/// devices get with their pull lists (SPEC.md §19). A retracted mission is a deleted record.
public struct MissionRecord: Sendable, Equatable {
  /// The reserved table; a record's identifier is the mission's.
  public static let table: Name = "ferry_missions"

  public var id: MissionID
  public var version: Int64
  public var title: String
  public var summary: String
  /// Items, and bytes of all of them.
  public var items: Int64
  public var size: Int64
  public var priority: Int64
  /// Missions before this one.
  public var after: [MissionID]
  /// The SHA-256 of the manifest's document, which is a blob like any other, and its bytes.
  public var manifest: ContentHash
  public var manifestSize: Int64
  /// Ed25519 (RFC 8032) over the manifest's bytes behind a line with the purpose (SPEC.md §21).
  public var signature: [UInt8]
  /// The signer's public key, 32 bytes.
  public var signer: [UInt8]
  /// Milliseconds since 1970.
  public var publishedAt: Int64
  /// The state of a bundle's version (SPEC.md §31); `nil` for an ordinary mission.
  public var bundle: BundleListing?

  /// Creates the record of a manifest whose document has this hash and size.
  public init(
    of manifest: MissionManifest, hash: ContentHash, manifestSize: Int64, signature: [UInt8],
    signer: [UInt8], publishedAt: Int64
  ) {
    id = manifest.id
    version = manifest.version
    title = manifest.title
    summary = manifest.summary
    items = Int64(manifest.items.count)
    size = manifest.size
    priority = manifest.priority
    after = manifest.after
    self.manifest = hash
    self.manifestSize = manifestSize
    self.signature = signature
    self.signer = signer
    self.publishedAt = publishedAt
    bundle = manifest.bundle.map { BundleListing(minShell: $0.minShell) }
  }

  /// The record's columns, by name.
  package var columns: [Column] {
    let columns = [
      Column("after", .text(afterText)), Column("items", .integer(items)),
      Column("manifest", .text(manifest.description)),
      Column("manifestSize", .integer(manifestSize)), Column("priority", .integer(priority)),
      Column("publishedAt", .integer(publishedAt)), Column("signature", .blob(signature)),
      Column("signer", .blob(signer)), Column("size", .integer(size)),
      Column("summary", .text(summary)), Column("title", .text(title)),
      Column("version", .integer(version)),
    ]
    guard let bundle else { return columns }
    return (columns + bundle.columns).sortedByBytes()
  }

  /// Reads a record; `nil` unless every column needed by a device is there and has the right type.
  package init?(id: String, value: (Name) -> Value?) {
    func integer(_ name: Name) -> Int64? {
      if case .integer(let number)? = value(name) { number } else { nil }
    }
    func text(_ name: Name) -> String? {
      if case .text(let text)? = value(name) { text } else { nil }
    }
    func blob(_ name: Name) -> [UInt8]? {
      if case .blob(let bytes)? = value(name) { bytes } else { nil }
    }
    guard let id = MissionID(id), let version = integer("version"), let size = integer("size"),
      let manifest = text("manifest").flatMap({ ContentHash($0) }),
      let manifestSize = integer("manifestSize"), let signature = blob("signature"),
      let signer = blob("signer"), 0...Limits.sequenceMax ~= version, Self.sizes.contains(size),
      Self.sizes.contains(manifestSize)
    else { return nil }
    self.id = id
    self.version = version
    self.size = size
    self.manifest = manifest
    self.manifestSize = manifestSize
    self.signature = signature
    self.signer = signer
    title = text("title") ?? ""
    summary = text("summary") ?? ""
    items = integer("items") ?? 0
    priority = integer("priority") ?? 0
    after = (text("after") ?? "").words().compactMap { MissionID(String($0)) }
    publishedAt = integer("publishedAt") ?? 0
    // The name, too, shows a bundle: a record in contradiction to its name is none.
    bundle = BundleID(mission: id) == nil ? nil : BundleListing(value: value)
    bound()
  }

  /// Bounds the numbers that decide nothing.
  mutating func bound() {
    items = min(max(0, items), Int64(MissionLimits.standard.items))
    publishedAt = min(max(0, publishedAt), Limits.wallTimeMax)
  }

  /// Bytes that a mission or its manifest may claim: sums of them stay far below 64 bits.
  static let sizes: ClosedRange<Int64> = 0...(1 << 56)

  /// Names hold no blanks.
  private var afterText: String { after.map(\.value).joined(separator: " ") }
}

/// A part of the list of a space's missions.
package struct MissionPage: Sendable, Equatable {
  /// Records of a page at most.
  package static let countMax = 1_000
  /// Bytes of a page's records as they are stored; the first record is always in it.
  package static let bytesMax = 1 << 20

  package var records: [MissionRecord]
  /// The place at which the list continues; `nil` at the end.
  package var next: MissionID?

  package init(records: [MissionRecord] = [], next: MissionID? = nil) {
    (self.records, self.next) = (records, next)
  }
}
