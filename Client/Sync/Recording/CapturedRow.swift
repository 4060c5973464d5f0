import FerryProtocol
import SQLite

/// The JSON of one row while its columns are collected. Its memory serves for the next row too.
struct CapturedRow {
  /// Memory above this is not kept for the next row.
  private static let keptBytes = 64 << 10

  private var json = JSONWriter(capacity: 256)
  private var isBegun = false
  private var isEmpty = true
  private let limits: Limits

  init(limits: Limits) { self.limits = limits }

  var hasColumns: Bool { !isEmpty }

  /// Bytes so far.
  var byteCount: Int { isBegun ? json.count : 0 }

  /// Begins a row with no columns.
  mutating func begin() {
    if json.count > Self.keptBytes { json = JSONWriter(capacity: 256) } else { json.restart() }
    json.raw("{")
    isBegun = true
    isEmpty = true
  }

  /// Hands the row's JSON to `body`.
  mutating func end(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard isBegun else { return }
    json.raw("}")
    json.bytes.withUnsafeBufferPointer(body)
    isBegun = false
  }

  /// Forgets what has been collected.
  mutating func drop() { isBegun = false }

  /// Adds one column, given its JSON name with the colon. Answers with why it cannot be recorded.
  mutating func add(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, at index: Int
  ) -> String? {
    guard isBegun else { return "ferry: a row was not begun" }
    if !isEmpty { json.raw(",") }
    isEmpty = false
    json.raw(name)
    switch arguments.type(index) {
    case .null: json.raw("null")
    case .integer: json.integerValue(arguments.int64(index))
    case .real: json.realValue(arguments.double(index))
    case .text: return addText(arguments.textBytes(index), name)
    case .blob:
      let blob = arguments.blobBytes(index)
      if blob.count > limits.valueBytes { return tooLarge(name, blob.count) }
      json.blobValue(blob)
    }
    return nil
  }

  private mutating func addText(
    _ text: UnsafeBufferPointer<UInt8>, _ name: UnsafeBufferPointer<UInt8>
  ) -> String? {
    if text.count > limits.valueBytes { return tooLarge(name, text.count) }
    guard isValidUTF8(text) else {
      return "ferry: column \(String(decoding: name, as: UTF8.self)) holds text that is not UTF-8"
    }
    json.string(utf8: text)
    return nil
  }

  private func tooLarge(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) -> String {
    "ferry: column \(String(decoding: name, as: UTF8.self)) holds \(count) bytes; "
      + "\(limits.valueBytes) can be synced. Keep large content in a mission"
  }
}
