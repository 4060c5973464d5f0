/// A stretch of content whose size is known: in memory, or in a file.
package enum ContentSegment: Sendable {
  case bytes([UInt8])
  case file(FileContent)

  /// In bytes.
  package var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(let content): content.count
    }
  }

  /// Returns some of it; `range` counts from the segment's own beginning and is within it.
  package subscript(range: Range<Int>) -> ContentSegment {
    switch self {
    case .bytes(let bytes): return .bytes(Array(bytes[range]))
    case .file(let content):
      precondition(range.lowerBound >= 0 && range.upperBound <= content.count, "outside")
      let start = content.range.lowerBound
      return .file(
        FileContent(
          content.file, range: start + range.lowerBound..<start + range.upperBound))
    }
  }

  /// Copies bytes from `position` on, at least one unless the segment ends there; nil when the
  /// file has become too short or cannot be read. It blocks for as long as the disk takes.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    let wanted = min(buffer.count, count - position)
    guard wanted > 0 else { return 0 }
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
    switch self {
    case .bytes(let bytes):
      target.copyBytes(from: bytes[position..<position + wanted])
      return wanted
    case .file(let content):
      let count = content.file.read(at: content.range.lowerBound + position, into: target)
      return count == 0 ? nil : count
    }
  }
}

/// Segments as one content.
package struct SegmentedContent: Sendable {
  private let segments: [ContentSegment]
  /// The beginning of each segment in the whole.
  private let starts: [Int]
  /// All together, in bytes.
  package let count: Int

  package init(_ segments: [ContentSegment]) {
    var (starts, end) = ([Int](), 0)
    for segment in segments {
      starts.append(end)
      end += segment.count
    }
    self.segments = segments
    self.starts = starts
    count = end
  }

  /// Copies bytes from `position` on until the buffer is full or the content ends. Returns their
  /// number, `nil` if a file has become too short or cannot be read. It blocks for as long as the
  /// disk takes.
  package func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    var filled = 0
    var index = starts.lastIndex { $0 <= position } ?? 0
    while filled < buffer.count, index < segments.count {
      let offset = position + filled - starts[index]
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      guard let count = segments[index].read(at: offset, into: rest) else { return nil }
      if count == 0 { index += 1 }
      filled += count
    }
    return filled
  }
}
