import FerryProtocol
import SQLite

/// The JSON of one row while its columns are collected: what it holds now, what it held before, and
/// which of its columns are more than values. Its memory serves for the next row too.
struct CapturedRow {
  /// Memory above this is not kept for the next row.
  private static let keptBytes = 64 << 10

  private var json = JSONWriter(capacity: 256)
  private var former = JSONWriter(capacity: 256)
  private var marks = JSONWriter(capacity: 64)
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
    if former.count > Self.keptBytes {
      former = JSONWriter(capacity: 256)
    } else {
      former.restart()
    }
    if marks.count > 0 { marks.restart() }
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

  /// Hands to `body`, after ``end(_:)``, the JSON of what the columns held before.
  mutating func endFormer(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard former.count > 0 else { return }
    former.raw("}")
    former.bytes.withUnsafeBufferPointer(body)
    former.restart()
  }

  /// Hands to `body`, after ``end(_:)``, the marked columns' names as a JSON array.
  mutating func endMarks(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard marks.count > 0 else { return }
    marks.raw("]")
    marks.bytes.withUnsafeBufferPointer(body)
    marks.restart()
  }

  /// Forgets what has been collected.
  mutating func drop() { isBegun = false }

  /// Adds one column, given its JSON name with the colon. Answers with why it cannot be recorded.
  mutating func add(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, at index: Int
  ) -> String? {
    if let fault = begin(name) { return fault }
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

  /// Adds a column that changed. Its name may begin with the mark of a ``ColumnCapture``.
  mutating func addDifference(
    name marked: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, old: Int, new: Int
  ) -> String? {
    let mark = marked.first == UInt8(ascii: "\"") ? nil : marked.first
    let name =
      mark == nil ? marked : UnsafeBufferPointer(rebasing: marked[1...])
    if mark == UInt8(ascii: "+"), arguments.type(new) == .integer {
      if let fault = begin(name) { return fault }
      let before = arguments.type(old) == .integer ? arguments.int64(old) : 0
      json.integerValue(arguments.int64(new) &- before)
      add(mark: "+", name)
    } else {
      if let fault = add(name: name, arguments, at: new) { return fault }
      if mark == UInt8(ascii: "~"), arguments.type(old) == .text, arguments.type(new) == .text,
        json.count + arguments.textBytes(old).count <= limits.operationBytes / 2
      {
        add(mark: "~", name)
      }
    }
    addFormer(name, arguments, old)
    return nil
  }

  private mutating func begin(_ name: UnsafeBufferPointer<UInt8>) -> String? {
    guard isBegun else { return "ferry: a row was not begun" }
    if !isEmpty { json.raw(",") }
    isEmpty = false
    json.raw(name)
    return nil
  }

  /// `name`: in quotes, with the colon.
  private mutating func add(mark: StaticString, _ name: UnsafeBufferPointer<UInt8>) {
    marks.raw(marks.count == 0 ? "[\"" : ",\"")
    marks.raw(mark)
    marks.raw(UnsafeBufferPointer(rebasing: name[1..<(name.count - 1)]))
  }

  /// What cannot be kept, since it was there before the table was tracked, is left out.
  private mutating func addFormer(
    _ name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, _ index: Int
  ) {
    let type = arguments.type(index)
    let bytes =
      type == .text
      ? arguments.textBytes(index).count : type == .blob ? arguments.blobBytes(index).count : 0
    guard bytes <= limits.valueBytes, former.count + bytes <= limits.operationBytes else { return }
    if type == .text && !isValidUTF8(arguments.textBytes(index)) { return }
    former.raw(former.count == 0 ? "{" : ",")
    former.raw(name)
    switch type {
    case .null: former.raw("null")
    case .integer: former.integerValue(arguments.int64(index))
    case .real: former.realValue(arguments.double(index))
    case .text: former.string(utf8: arguments.textBytes(index))
    case .blob: former.blobValue(arguments.blobBytes(index))
    }
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
