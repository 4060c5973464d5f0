import FerryProtocol
import FerrySQLite

/// The JSON of one row while the columns are collected: values, former values, and the names of
/// columns that are more than values. The next row reuses the memory.
struct CapturedRow {
  /// Memory above this is not kept for the next row.
  private static let keptBytes = 64 << 10

  /// The content of one operation on a row, as JSON; empty if there is none.
  struct Part {
    let json: [UInt8]
    /// The former values of the columns.
    let former: [UInt8]
    /// Names of columns that are more than values.
    let marks: [UInt8]
    /// The bytes that count towards the transaction's size.
    let byteCount: Int
  }

  private var json = JSONWriter(capacity: 256)
  private var former = JSONWriter(capacity: 256)
  private var marks = JSONWriter(capacity: 64)
  private var isBegun = false
  private var isEmpty = true
  /// The bytes of former texts sent with the operation.
  private var originalBytes = 0
  /// True if the row was deleted: then the values are only for display, in one operation of any
  /// size.
  private(set) var isDeleted = false
  /// True if a batch can have the same effect: the row is updated or deleted, and not inserted.
  private(set) var mayBeBatch = false
  /// The approximate size of the whole row.
  private var size = RowSize()
  private let limits: Limits
  /// The earlier parts, if one operation is too small for the row.
  private(set) var fullParts: [Part] = []

  init(limits: Limits) { self.limits = limits }

  var hasColumns: Bool { !isEmpty }

  /// The number of operations for the row.
  var partCount: Int { fullParts.count + 1 }

  /// The bytes to send so far, without those of a deleted row.
  var byteCount: Int {
    guard isBegun, !isDeleted else { return 0 }
    return fullParts.reduce(json.count + originalBytes) { $0 + $1.byteCount }
  }

  /// The reason why the complete row cannot be synced, or `nil`.
  var sizeFault: String? { isDeleted ? nil : size.fault(limits) }

  /// Begins a row with no columns.
  mutating func begin(_ kind: OperationKind) {
    if json.count > Self.keptBytes { json = JSONWriter(capacity: 256) }
    if former.count > Self.keptBytes { former = JSONWriter(capacity: 256) }
    if !fullParts.isEmpty { fullParts = [] }
    isDeleted = kind == .delete
    mayBeBatch = kind == .update || kind == .delete
    size = RowSize()
    beginPart()
  }

  private mutating func beginPart() {
    json.restart()
    former.restart()
    if marks.count > 0 { marks.restart() }
    json.raw("{")
    isBegun = true
    isEmpty = true
    originalBytes = 0
  }

  /// Ends a part without room for `bytes` more; the row continues in another one.
  private mutating func makeRoom(for bytes: Int) {
    guard !isEmpty, !isDeleted,
      json.count + originalBytes + bytes > limits.operationBytes
    else { return }
    let count = json.count + originalBytes
    json.raw("}")
    if former.count > 0 { former.raw("}") }
    if marks.count > 0 { marks.raw("]") }
    fullParts.append(
      Part(json: json.bytes, former: former.bytes, marks: marks.bytes, byteCount: count))
    beginPart()
  }

  /// Passes the JSON of the row's last part to `body`.
  mutating func end(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard isBegun else { return }
    json.raw("}")
    json.bytes.withUnsafeBufferPointer(body)
    isBegun = false
  }

  /// Passes the JSON of the columns' former values to `body`, after ``end(_:)``.
  mutating func endFormer(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard former.count > 0 else { return }
    former.raw("}")
    former.bytes.withUnsafeBufferPointer(body)
    former.restart()
  }

  /// Passes the marked columns' names as a JSON array to `body`, after ``end(_:)``.
  mutating func endMarks(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    guard marks.count > 0 else { return }
    marks.raw("]")
    marks.bytes.withUnsafeBufferPointer(body)
    marks.restart()
  }

  /// Discards the collected columns.
  mutating func drop() {
    isBegun = false
    fullParts = []
  }

  /// Counts a column left unchanged by an update, or recorded in another way.
  mutating func measure(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, old: Int, new: Int
  ) {
    let bytes = RowSize.bytes(of: arguments, at: new)
    size.add(name.count + bytes, growth: bytes - RowSize.bytes(of: arguments, at: old))
  }

  /// Counts an unchanged column.
  mutating func measure(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, at index: Int
  ) {
    size.add(name.count + RowSize.bytes(of: arguments, at: index), growth: 0)
  }

  /// Adds one column of an inserted or deleted row, given the JSON name with the colon. Returns the
  /// reason if it cannot be recorded. Of a deleted row it omits values that cannot be kept, so the
  /// delete itself can always be recorded.
  mutating func add(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, at index: Int
  ) -> Fault? {
    if isDeleted && !isKeepable(arguments, index) { return nil }
    let bytes = isDeleted ? 0 : RowSize.bytes(of: arguments, at: index)
    size.add(name.count + bytes, growth: bytes)
    return addValue(name: name, arguments, at: index, bytes: bytes)
  }

  private mutating func addValue(
    name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, at index: Int, bytes: Int,
    originals: Int = 0
  ) -> Fault? {
    let type = arguments.type(index)
    if !isDeleted, type == .text || type == .blob {
      let count =
        type == .text ? arguments.textBytes(index).count : arguments.blobBytes(index).count
      if count > limits.valueBytes { return tooLarge(name, count) }
      if bytes > limits.operationBytes { return tooLargeAsJSON(name, bytes) }
      makeRoom(for: name.count + bytes + originals + 2)
    } else {
      makeRoom(for: name.count + RowSize.numberBytes)
    }
    if let fault = begin(name) { return fault }
    switch type {
    case .null: json.raw("null")
    case .integer: json.integerValue(arguments.int64(index))
    case .real: json.realValue(arguments.double(index))
    case .text: return addText(arguments.textBytes(index), name)
    case .blob: json.blobValue(arguments.blobBytes(index))
    }
    return nil
  }

  /// Adds a changed column. The name may begin with the mark of a ``ColumnCapture``.
  mutating func addDifference(
    name marked: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, old: Int, new: Int
  ) -> Fault? {
    let mark = marked.first == UInt8(ascii: "\"") ? nil : marked.first
    let name =
      mark == nil ? marked : UnsafeBufferPointer(rebasing: marked[1...])
    let bytes = RowSize.bytes(of: arguments, at: new)
    let formerBytes = RowSize.bytes(of: arguments, at: old)
    size.add(name.count + bytes, growth: bytes - formerBytes)
    if mark == UInt8(ascii: "+"), arguments.type(new) == .integer {
      makeRoom(for: name.count + RowSize.numberBytes)
      if let fault = begin(name) { return fault }
      let before = arguments.type(old) == .integer ? arguments.int64(old) : 0
      json.integerValue(arguments.int64(new) &- before)
      add(mark: "+", name)
    } else {
      // A value too large for a merge is sent like any other value.
      let isMerged =
        mark == UInt8(ascii: "~") && arguments.type(old) == .text && arguments.type(new) == .text
        && bytes + formerBytes <= limits.operationBytes / 2
      let originals = isMerged ? formerBytes : 0
      if let fault = addValue(
        name: name, arguments, at: new, bytes: bytes, originals: originals)
      {
        return fault
      }
      originalBytes += originals
      if isMerged { add(mark: "~", name) }
    }
    addFormer(name, arguments, old)
    return nil
  }

  private mutating func begin(_ name: UnsafeBufferPointer<UInt8>) -> Fault? {
    guard isBegun else { return Fault(reason: "a row was not begun") }
    if !isEmpty { json.raw(",") }
    isEmpty = false
    json.raw(name)
    return nil
  }

  /// Adds a column's name. `name` is in quotes, with the colon.
  private mutating func add(mark: StaticString, _ name: UnsafeBufferPointer<UInt8>) {
    marks.raw(marks.count == 0 ? "[\"" : ",\"")
    marks.raw(mark)
    marks.raw(UnsafeBufferPointer(rebasing: name[1..<(name.count - 1)]))
  }

  /// Returns true if a value can be read back. A value from before the tracking of the table may be
  /// unreadable.
  private func isKeepable(_ arguments: SQLiteArguments, _ index: Int) -> Bool {
    switch arguments.type(index) {
    case .null, .integer, .real: return true
    case .blob: return arguments.blobBytes(index).count <= limits.valueBytes
    case .text:
      let text = arguments.textBytes(index)
      return text.count <= limits.valueBytes && isValidUTF8(text)
    }
  }

  /// Adds a former value; omits it if it cannot be kept.
  private mutating func addFormer(
    _ name: UnsafeBufferPointer<UInt8>, _ arguments: SQLiteArguments, _ index: Int
  ) {
    guard isKeepable(arguments, index),
      former.count + RowSize.bytes(of: arguments, at: index) <= limits.recordStateBytes
    else { return }
    let type = arguments.type(index)
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
  ) -> Fault? {
    guard isValidUTF8(text) else { return Fault(name, "contains text that is not UTF-8") }
    json.string(utf8: text)
    return nil
  }

  private func tooLarge(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) -> Fault {
    Fault(
      name,
      "has \(count.grouped) bytes; \(limits.valueBytes.grouped) can be synced. "
        + "Keep large content in a mission")
  }

  private func tooLargeAsJSON(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) -> Fault {
    Fault(
      name,
      "takes \(count.grouped) bytes as JSON; \(limits.operationBytes.grouped) can be synced. "
        + "Keep large content in a mission")
  }
}

extension CapturedRow {
  /// The reason why a column cannot be recorded.
  struct Fault {
    /// The column's name in the space; `nil` for a fault of the row.
    var column: String?
    let reason: String

    init(reason: String) { self.reason = reason }

    /// - Parameter name: the JSON name with the colon.
    init(_ name: UnsafeBufferPointer<UInt8>, _ reason: String) {
      let json = Array(name.dropLast())
      let plain = try? decode(json) { (reader) throws(MalformedMessage) in try reader.string() }
      (column, self.reason) = (plain, reason)
    }
  }
}
