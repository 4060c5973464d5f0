import FerryPlatform

/// The requested part of content (RFC 9110 §14).
enum ByteRange: Equatable {
  case all
  case part(Range<Int64>)
  case unsatisfiable

  /// Reads the field `Range`. Several ranges, other units and malformed ranges count as none, so
  /// the answer has all bytes.
  init(_ field: String?, size: Int64) {
    guard let ranges = field.flatMap(ByteRanges.init(header:)), ranges.count == 1 else {
      self = .all
      return
    }
    switch ranges.resolved(size: Int(size)) {
    case .whole: self = .all
    case .ranges(let parts):
      self = parts.first.map { .part(Int64($0.lowerBound)..<Int64($0.upperBound)) } ?? .all
    case .unsatisfiable: self = .unsatisfiable
    }
  }
}
