import FerryProtocol
import SQLite

/// About how large a row is as JSON, and by how much a statement makes it grow. What is counted is
/// never less than the truth.
struct RowSize {
  /// A number has no more bytes, with its tag.
  static let numberBytes = 40
  /// Texts up to this are counted as if each byte had to be escaped.
  private static let shortBytes = 64

  private var bytes = 0
  private var columns = 0
  private var growth = 0

  /// Counts a column of the row as it will be.
  ///
  /// - Parameters:
  ///   - count: Bytes of its name and value.
  ///   - growth: How many more than before.
  mutating func add(_ count: Int, growth: Int) {
    bytes += count + 2
    columns += 1
    self.growth += growth
  }

  /// Why the row cannot be written. One that is too large already may become smaller.
  func fault(_ limits: Limits) -> String? {
    guard growth > 0, bytes > limits.rowBytes(columns: columns) else { return nil }
    return "ferry: the row would take \(bytes) bytes as JSON; with its \(columns) columns, "
      + "\(limits.rowBytes(columns: columns)) can be synced. Keep large content in a mission"
  }

  /// The bytes of a value as JSON, or a few more.
  static func bytes(of arguments: SQLiteArguments, at index: Int) -> Int {
    switch arguments.type(index) {
    case .null: return 4
    case .integer, .real: return numberBytes
    case .blob: return (arguments.blobBytes(index).count + 2) / 3 * 4 + 12
    case .text:
      let text = arguments.textBytes(index)
      if text.count <= shortBytes { return text.count * 6 + 2 }
      var count = text.count + 2
      for byte in text where byte < 0x20 || byte == 0x22 || byte == 0x5C {
        count += byte < 0x20 ? 5 : 1
      }
      return count
    }
  }
}
