/// The layout of a partial file: the content, and from the next page on a header and a number for
/// each chunk.
///
/// The header has a word for the format, the file's size, the chunks' size and an identifier of the
/// system's run. So marks of another file or run are recognised.
struct PartialLayout: Equatable, Sendable {
  /// Bytes of the header.
  static let headerBytes = 64
  private static let format = Array("FerryPt1".utf8)
  private static let sealedFormat = Array("FerryPs1".utf8)

  /// Bytes of the content.
  let size: Int64
  /// Bytes of each chunk but the last.
  let chunkSize: Int64
  /// Chunks of the content.
  let chunkCount: Int
  /// Files smaller than this, in bytes, have no marks, and are fetched again from scratch.
  var marksFrom: Int64 = 1 << 20
  /// True if the content is encrypted there: marks of plain content do not count then.
  var isSealed = false

  /// True if there are marks at all.
  var hasMarks: Bool { size >= marksFrom }

  /// The bytes of the file with the whole content and without marks.
  var fileSize: Int64 { isSealed ? ContentSeal.fileSize(size) : size }

  /// The offset of the header.
  var marksAt: Int64 { (fileSize + 4095) / 4096 * 4096 }

  /// Returns the bytes of content from the start of a file with so many bytes, holes included.
  func contentBytes(inFile bytes: Int64) -> Int64 {
    if !isSealed || bytes >= fileSize { return min(bytes, size) }
    return min(ContentSeal.wholeBytes(inFile: bytes), size)
  }

  /// Returns the bytes of a chunk that are in the file, of `count` received from the start: whole
  /// parts, if they are sealed.
  func lasting(_ count: Int64, of chunk: Int) -> Int64 {
    guard isSealed, count < length(of: chunk) else { return count }
    return count / SealedFile.partBytes * SealedFile.partBytes
  }

  private func length(of chunk: Int) -> Int64 {
    min(chunkSize, size - Int64(chunk) * chunkSize)
  }

  /// The offset after the last mark.
  var marksEnd: Int64 { mark(of: chunkCount) }

  /// Returns the offset of a chunk's mark.
  func mark(of chunk: Int) -> Int64 { marksAt + Int64(Self.headerBytes) + Int64(chunk) * 8 }

  /// Returns the header; it has at most 40 bytes of the identifier.
  func header(bootID: String) -> [UInt8] {
    let identifier = Array(bootID.utf8.prefix(40))
    let format = isSealed ? Self.sealedFormat : Self.format
    return format + Self.encode(size) + Self.encode(chunkSize) + identifier
      + [UInt8](repeating: 0, count: 40 - identifier.count)
  }

  /// Reads header and marks. Returns the fetched bytes of each started chunk; `nil` if they belong
  /// to another file, or to another run of the system.
  func marks(in bytes: [UInt8], bootID: String) -> [Int: Int64]? {
    guard bytes.starts(with: header(bootID: bootID)) else { return nil }
    var marks: [Int: Int64] = [:]
    let count = min(chunkCount, (bytes.count - Self.headerBytes) / 8)
    for chunk in 0..<count {
      let start = Self.headerBytes + chunk * 8
      let mark = Self.decode(bytes[start..<start + 8])
      guard mark > 0, mark <= length(of: chunk) else { continue }
      let lasting = lasting(mark, of: chunk)
      if lasting > 0 { marks[chunk] = lasting }
    }
    return marks
  }

  /// Encodes a number as eight bytes, the lowest first.
  static func encode(_ number: Int64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static func decode(_ bytes: ArraySlice<UInt8>) -> Int64 {
    bytes.reversed().reduce(0) { $0 << 8 | Int64($1) }
  }
}

/// The remains of an earlier run in a partial file.
struct PartialRemains: Equatable, Sendable {
  /// The bytes of the content from the start, holes included.
  var contentBytes: Int64
  /// The bytes from the start of each started chunk; `nil` if the system has restarted since, or if
  /// this is unknown.
  var marks: [Int: Int64]?
  /// True if the file looks like the result of ``PartialFile/finish(isDurable:)``. A process may be
  /// killed before it records the end, so hashes decide then.
  var mayBeFinished = false
}
