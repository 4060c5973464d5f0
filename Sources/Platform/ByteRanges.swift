/// The ranges of a `Range` header (RFC 9110 §14.1), before the size is known. Pure.
package struct ByteRanges: Sendable, Equatable {
  /// The result of the ranges once the size is known.
  package enum Resolution: Sendable, Equatable {
    /// The header is to be ignored.
    case whole
    /// At least one range; none is empty, no two touch, and they are in the requested order.
    case ranges([Range<Int>])
    /// There is nothing at any of them.
    case unsatisfiable
  }

  /// One `range-spec`, positions in bytes.
  private enum Specification: Sendable, Equatable {
    case span(first: Int, last: Int)
    case suffix(Int)
  }

  /// The most ranges in one header: more count as an attack (RFC 9110 §17.15), and the header is
  /// ignored.
  package static let countMax = 64
  /// The smallest gap in bytes between two ranges sent separately. Each part of a multipart answer
  /// costs about that much (RFC 9110 §14.6 note).
  package static let gapMin = 80

  private let specifications: [Specification]

  /// Reads the header; `nil` if it is to be ignored: it is malformed, counts in another unit than
  /// bytes, or lists more than `countMax` ranges. Numbers beyond 63 bits count as the greatest of
  /// them.
  package init?(header text: String) {
    let parts = text.parts(at: "=", most: 2)
    guard parts.count == 2, parts[0].lowercasedASCII == "bytes" else { return nil }
    var specifications: [Specification] = []
    for element in parts[1].words(at: ",") {
      let element = element.trimmedBlanks
      // An empty element of a list is to be overlooked (RFC 9110 §5.6.1.2).
      if element.isEmpty { continue }
      guard let specification = Self.specification(element),
        specifications.count < Self.countMax
      else { return nil }
      specifications.append(specification)
    }
    guard !specifications.isEmpty else { return nil }
    self.specifications = specifications
  }

  /// The number of ranges.
  package var count: Int { specifications.count }

  /// Returns the selected bytes of a representation of `size` bytes.
  package func resolved(size: Int) -> Resolution {
    var ranges: [Range<Int>] = []
    for specification in specifications {
      switch specification {
      case .span(let first, let last) where first < size:
        ranges.append(first..<min(last, size - 1) + 1)
      case .suffix(let count) where count > 0:
        // All of an empty content is available, but no Content-Range can express this.
        if size == 0 { return .whole }
        ranges.append(size - min(count, size)..<size)
      case .span, .suffix: continue
      }
    }
    return ranges.isEmpty ? .unsatisfiable : .ranges(Self.coalesced(ranges))
  }

  /// Joins ranges that overlap or nearly touch; a joined range is at the place of the first part.
  /// All together is never more than the size, so overlaps cannot multiply the work.
  private static func coalesced(_ ranges: [Range<Int>]) -> [Range<Int>] {
    let ascending = ranges.enumerated().sorted {
      ($0.element.lowerBound, $0.offset) < ($1.element.lowerBound, $1.offset)
    }
    var joined: [(place: Int, range: Range<Int>)] = []
    for (place, range) in ascending {
      if let last = joined.last, range.lowerBound - last.range.upperBound < gapMin {
        let end = max(last.range.upperBound, range.upperBound)
        joined[joined.count - 1] = (min(last.place, place), last.range.lowerBound..<end)
      } else {
        joined.append((place, range))
      }
    }
    return joined.sorted { $0.place < $1.place }.map(\.range)
  }

  private static func specification(_ text: Substring) -> Specification? {
    let ends = text.parts(at: "-", most: 2)
    guard ends.count == 2 else { return nil }
    if ends[0].isEmpty { return number(ends[1]).map { .suffix($0) } }
    guard let first = number(ends[0]) else { return nil }
    if ends[1].isEmpty { return .span(first: first, last: .max) }
    guard let last = number(ends[1]), first <= last else { return nil }
    return .span(first: first, last: last)
  }

  private static func number(_ digits: Substring) -> Int? {
    guard !digits.isEmpty,
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(digits) ?? .max
  }
}
