import FerryProtocol
import FerrySQLite

/// The approximate size of a row as JSON, and the growth by a statement. The result is never less
/// than the real size.
struct RowSize {
  /// The most bytes of a number, with the tag.
  static let numberBytes = 40
  /// The longest text counted as if each byte had to be escaped.
  private static let shortBytes = 64

  private var bytes = 0
  private var columns = 0
  private var growth = 0

  /// Counts a column of the future row.
  ///
  /// - Parameters:
  ///   - count: The bytes of the name and the value.
  ///   - growth: The bytes more than before.
  mutating func add(_ count: Int, growth: Int) {
    bytes += count + 2
    columns += 1
    self.growth += growth
  }

  /// Returns the reason why the row cannot be written, or `nil`. A row over the limit already may
  /// become smaller.
  func fault(_ limits: Limits) -> String? {
    guard growth > 0, bytes > limits.rowBytes(columns: columns) else { return nil }
    return
      "the row would take \(bytes.grouped) bytes as JSON; with its \(columns.counted("column")), "
      + "\(limits.rowBytes(columns: columns).grouped) can be synced. Keep large content in a mission"
  }

  /// Returns an upper bound of the bytes of a value as JSON.
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
