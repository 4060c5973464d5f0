import FerryProtocol

/// The parts of an upload by their ends; pure.
struct StagedParts: Sendable, Equatable {
  /// Bytes of the part that ends at each place.
  private var sizes: [Int64: Int64] = [:]

  /// Adds a part, unless no request can have brought it.
  mutating func add(_ end: Int64, size: Int64) {
    let most = Int64(Limits.standard.messageBytes)
    if (1...most).contains(size) && size <= end { sizes[end] = size }
  }

  /// The greatest end that parts without a gap reach from the beginning.
  var reached: Int64 {
    var ends: Set<Int64> = [0]
    for (end, size) in sizes.sorted(by: { $0.key < $1.key }) where ends.contains(end - size) {
      ends.insert(end)
    }
    return ends.max() ?? 0
  }

  /// Returns the ends of parts that make up the bytes up to `end`, in order; `nil` if one is missing.
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

/// The bytes that parts of an owner's unfinished uploads hold; pure.
struct StagedUse: Sendable, Equatable {
  /// Parts that count with their bytes alone. Each further one counts 64 KiB more, so that no owner
  /// fills the store's lists with tiny parts.
  static let freeParts = 1_000
  static let partBytes: Int64 = 64 << 10

  /// Bytes of other uploads than the present one.
  private(set) var others: Int64 = 0
  private(set) var own: Int64 = 0
  private var parts = 0

  mutating func add(_ size: Int64, isOwn: Bool) {
    parts += 1
    let bytes = max(0, min(size, 1 << 40)) + (parts > Self.freeParts ? Self.partBytes : 0)
    if isOwn { own += bytes } else { others += bytes }
  }

  /// Whether an upload of `total` bytes has no room in a quota beside the others.
  func exceeds(_ quota: Int64, total: Int64) -> Bool {
    let (sum, isHuge) = others.addingReportingOverflow(max(own, total))
    return isHuge || sum > quota
  }
}
