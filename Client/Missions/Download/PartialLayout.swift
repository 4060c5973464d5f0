/// What lies where in a partial file: the content, and from the next page on a header and a number
/// for each chunk.
///
/// The header is a word that names the format, the file's size, the chunks' size and an identifier
/// of the system's run, so that marks of another file or time are recognised.
struct PartialLayout: Equatable, Sendable {
  /// Bytes of the header.
  static let headerBytes = 64
  private static let format = Array("FerryPt1".utf8)
  private static let encryptedFormat = Array("FerryPe1".utf8)

  /// Bytes of the content.
  let size: Int64
  /// Bytes of each chunk but the last.
  let chunkSize: Int64
  /// Chunks of the content.
  let chunkCount: Int
  /// Smaller files, in bytes, are fetched anew rather than marked.
  var marksFrom: Int64 = 1 << 20
  /// Whether the content stands there encrypted: marks of other content are not believed.
  var isEncrypted = false

  /// Whether there are marks at all.
  var hasMarks: Bool { size >= marksFrom }

  /// Where the header begins.
  var marksAt: Int64 { (size + 4095) / 4096 * 4096 }

  /// Where the last mark ends.
  var marksEnd: Int64 { mark(of: chunkCount) }

  /// Where a chunk's mark is.
  func mark(of chunk: Int) -> Int64 { marksAt + Int64(Self.headerBytes) + Int64(chunk) * 8 }

  /// The header; an identifier is kept up to 40 bytes.
  func header(bootID: String) -> [UInt8] {
    let identifier = Array(bootID.utf8.prefix(40))
    let format = isEncrypted ? Self.encryptedFormat : Self.format
    return format + Self.encode(size) + Self.encode(chunkSize) + identifier
      + [UInt8](repeating: 0, count: 40 - identifier.count)
  }

  /// Reads header and marks: bytes that are there of each chunk that was begun. Nil where they are
  /// another file's, or from another run of the system.
  func marks(in bytes: [UInt8], bootID: String) -> [Int: Int64]? {
    guard bytes.starts(with: header(bootID: bootID)) else { return nil }
    var marks: [Int: Int64] = [:]
    let count = min(chunkCount, (bytes.count - Self.headerBytes) / 8)
    for chunk in 0..<count {
      let start = Self.headerBytes + chunk * 8
      let mark = Self.decode(bytes[start..<start + 8])
      let length = min(chunkSize, size - Int64(chunk) * chunkSize)
      if mark > 0, mark <= length { marks[chunk] = mark }
    }
    return marks
  }

  /// Eight bytes, the lowest first.
  static func encode(_ number: Int64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static func decode(_ bytes: ArraySlice<UInt8>) -> Int64 {
    bytes.reversed().reduce(0) { $0 << 8 | Int64($1) }
  }
}

/// What an earlier run left in a partial file.
struct PartialRemains: Equatable, Sendable {
  /// Bytes of the content from its start on, holes included.
  var contentBytes: Int64
  /// Bytes from the start of each chunk that was begun; nil where the system has restarted since,
  /// or nobody knows.
  var marks: [Int: Int64]?
}
