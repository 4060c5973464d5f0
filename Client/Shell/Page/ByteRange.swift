import FerryPlatform

/// The requested part of content (RFC 9110 §14).
enum ByteRange: Equatable {
  case all
  case part(Range<Int64>)
  case unsatisfiable

  /// Reads the field `Range`. Several ranges, other units and malformed ranges count as none, so
  /// the answer has all bytes.
  init(_ field: String?, size: Int64) {
    guard let spans = field?.rest(after: "bytes=") else {
      self = .all
      return
    }
    let ends = spans.parts(at: "-")
    guard ends.count == 2, !ends[0].isEmpty || !ends[1].isEmpty,
      let first = Self.number(ends[0]), let last = Self.number(ends[1])
    else {
      self = .all
      return
    }
    switch (first, last) {
    case (let first?, let last?):
      guard first <= last else {
        self = .all
        return
      }
      self = first < size ? .part(first..<min(last + 1, size)) : .unsatisfiable
    case (let first?, nil): self = first < size ? .part(first..<size) : .unsatisfiable
    case (nil, let count?):
      self = count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .unsatisfiable
    case (nil, nil): self = .all
    }
  }

  /// Returns the number; an empty text is none. The result is `nil` for another text.
  private static func number(_ text: Substring) -> Int64?? {
    if text.isEmpty { return .some(nil) }
    guard text.utf8.count <= 18, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return .some(Int64(text))
  }
}
