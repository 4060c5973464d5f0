import FerryProtocol

/// The parts of an upload by their ends; pure.
struct StagedParts: Sendable, Equatable {
  /// Bytes of the part with each end.
  private var sizes: [Int64: Int64] = [:]

  /// Adds a part. Ignores parts larger than a request.
  mutating func add(_ end: Int64, size: Int64) {
    let most = Int64(Limits.standard.messageBytes)
    if (1...most).contains(size) && size <= end { sizes[end] = size }
  }

  /// The greatest end of parts without a gap from the beginning.
  var reached: Int64 {
    var ends: Set<Int64> = [0]
    for (end, size) in sizes.sorted(by: { $0.key < $1.key }) where ends.contains(end - size) {
      ends.insert(end)
    }
    return ends.max() ?? 0
  }

  /// Returns the ends of the parts after a place.
  func ends(after place: Int64) -> [Int64] { sizes.keys.filter { $0 > place }.sorted() }

  /// Returns the ends of the parts for the bytes up to `end`, in order; `nil` if one is missing.
  func chain(to end: Int64) -> [Int64]? {
    var (ends, place) = ([Int64](), end)
    while place > 0 {
      guard let size = sizes[place] else { return nil }
      ends.append(place)
      place -= size
    }
    return ends.reversed()
  }
}

/// The bytes of the parts of an owner's unfinished uploads; pure.
struct StagedUse: Sendable, Equatable {
  /// The number of parts of which the bytes count. Each further part counts as 64 KiB at least.
  /// Otherwise an owner could store any number of tiny parts.
  static let freeParts = 1_000
  static let partBytes: Int64 = 64 << 10

  /// Bytes of the owner's other uploads.
  private(set) var others: Int64 = 0
  private(set) var own: Int64 = 0
  private var parts = 0

  mutating func add(_ size: Int64, isOwn: Bool) {
    parts += 1
    let bytes = min(max(size, parts > Self.freeParts ? Self.partBytes : 0), 1 << 40)
    if isOwn { own += bytes } else { others += bytes }
  }

  /// Returns `true` if this upload of `total` bytes and the owner's others exceed a quota.
  func exceeds(_ quota: Int64, total: Int64) -> Bool {
    let (sum, isHuge) = others.addingReportingOverflow(max(own, total))
    return isHuge || sum > quota
  }
}
