/// A merge of two texts with the same original, line by line, for ``ConflictPolicy/textMerge``
/// (diff3: Khanna, Kunal and Pierce, "A formal investigation of diff3", 2007).
package enum TextMerge {
  /// Examined lines of one text.
  package static let linesMax = 20_000
  /// Lines added to and removed from the original by one text, counted together.
  package static let editsMax = 1_000

  /// Returns the text with both changes, in either order of the arguments. Returns `nil` if they
  /// touch the same or neighbouring lines, if a value is no text, or if the merge is too much work.
  package static func merge(original: Value, _ first: Value, _ second: Value) -> Value? {
    if first == second || second == original { return first }
    if first == original { return second }
    guard case .text(let original) = original, case .text(let first) = first,
      case .text(let second) = second
    else { return nil }
    var lines = Lines()
    guard let old = lines.numbers(of: original), let left = lines.numbers(of: first),
      let right = lines.numbers(of: second),
      let kept = LineDiff.matches(old, left, editsMax: editsMax),
      let alsoKept = LineDiff.matches(old, right, editsMax: editsMax),
      let merged = merge(Side(left, kept), Side(right, alsoKept), old)
    else { return nil }
    return lines.text(of: merged).map { .text($0) }
  }

  /// One changed text, with the place of each original line in it.
  private struct Side {
    let lines: [Int32]
    let places: [Int32]
    var position = 0

    init(_ lines: [Int32], _ places: [Int32]) {
      self.lines = lines
      self.places = places
    }

    /// Returns the lines of this text before the original's line `index`, or to the end.
    mutating func lines(before index: Int) -> ArraySlice<Int32> {
      let end = index < places.count ? Int(places[index]) : lines.count
      defer { position = end + 1 }
      return lines[position..<end]
    }
  }

  private static func merge(_ first: Side, _ second: Side, _ old: [Int32]) -> [Int32]? {
    var (first, second) = (first, second)
    var merged: [Int32] = []
    var start = 0
    for index in 0...old.count {
      // Lines kept by both texts separate the changes.
      guard index == old.count || first.places[index] >= 0 && second.places[index] >= 0 else {
        continue
      }
      let was = old[start..<index]
      let (left, right) = (first.lines(before: index), second.lines(before: index))
      if left.elementsEqual(right) || right.elementsEqual(was) {
        merged += left
      } else if left.elementsEqual(was) {
        merged += right
      } else {
        return nil
      }
      if index < old.count { merged.append(old[index]) }
      start = index + 1
    }
    return merged
  }
}

/// Lines as numbers: equal bytes, equal number. A line includes the line feed at the end.
private struct Lines {
  private var known: [Line] = []
  private var numbers: [Line: Int32] = [:]

  private struct Line: Hashable {
    let bytes: ArraySlice<UInt8>

    func hash(into hasher: inout Hasher) {
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
  }

  mutating func numbers(of text: String) -> [Int32]? {
    let bytes = Array(text.utf8)
    var lines: [Int32] = []
    var start = 0
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.count
      guard lines.count < TextMerge.linesMax else { return nil }
      lines.append(number(of: Line(bytes: bytes[start..<end])))
      start = end
    }
    return lines
  }

  private mutating func number(of line: Line) -> Int32 {
    if let number = numbers[line] { return number }
    let number = Int32(known.count)
    known.append(line)
    numbers[line] = number
    return number
  }

  /// Returns the text of the lines; `nil` if it would be larger than a value may be, or would join
  /// two lines.
  func text(of lines: [Int32]) -> String? {
    var bytes: [UInt8] = []
    for number in lines {
      // A last line without a line feed stays last.
      if let last = bytes.last, last != 0x0A { return nil }
      bytes += known[Int(number)].bytes
      if bytes.count > Limits.standard.valueBytes { return nil }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
