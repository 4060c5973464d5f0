/// A strict pull parser for JSON (RFC 8259) over bytes that outlive it. Numbers keep all their
/// digits, strings must be valid UTF-8 without lone surrogates, and nesting is bounded.
package struct JSONReader {
  private let bytes: UnsafeBufferPointer<UInt8>
  package private(set) var position = 0
  private var depth: Int
  /// The column names of earlier records; `nil` for messages of one record.
  let recent: RecentNames?

  package init(
    _ bytes: UnsafeRawBufferPointer, depth: Int = Limits.standard.depth,
    hasManyRecords: Bool = false
  ) {
    self.bytes = bytes.bindMemory(to: UInt8.self)
    self.depth = depth
    recent = hasManyRecords ? RecentNames() : nil
  }

  package func malformed(_ reason: String) -> MalformedMessage {
    MalformedMessage(reason: reason, offset: position)
  }

  // MARK: Structure

  /// Returns the first byte of the next value, without consuming it.
  @inline(__always)
  package mutating func peek() throws(MalformedMessage) -> UInt8 {
    skipSpace()
    guard position < bytes.count else { throw malformed("the message ends too early") }
    return bytes[position]
  }

  /// Fails unless a value begins with this byte.
  ///
  /// - Parameter name: The expected value.
  package mutating func require(_ byte: UInt8, _ name: String) throws(MalformedMessage) {
    guard try peek() == byte else { throw malformed("\(name) was expected") }
  }

  /// Reads an object; `member` must consume each value.
  @inline(__always)
  package mutating func object(
    _ member: (JSONKey, inout JSONReader) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) {
    try open(0x7B, "an object")
    if try closes(0x7D) { return }
    while true {
      guard try peek() == 0x22 else { throw malformed("a member's name was expected") }
      let key = try JSONKey(try stringSpan())
      try expect(0x3A, "':'")
      try member(key, &self)
      if try !continues(before: 0x7D) { return }
    }
  }

  /// Reads an array; `element` must consume each value.
  @inline(__always)
  package mutating func array(
    _ element: (inout JSONReader) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) {
    try open(0x5B, "an array")
    if try closes(0x5D) { return }
    while true {
      try element(&self)
      if try !continues(before: 0x5D) { return }
    }
  }

  /// Fails unless only white space is left.
  package mutating func end() throws(MalformedMessage) {
    skipSpace()
    guard position == bytes.count else { throw malformed("there is more after the message") }
  }

  /// Skips one value of any kind and returns the bytes.
  /// - Parameter refusingRepeats: Whether a duplicate member of an object in it is refused.
  @discardableResult
  package mutating func skip(
    refusingRepeats: Bool = false
  ) throws(MalformedMessage) -> UnsafeRawBufferPointer {
    let first = try peek()
    let start = position
    switch first {
    case 0x7B:
      var names = Set<[UInt8]>()
      try object { (key, reader) throws(MalformedMessage) in
        if refusingRepeats {
          try reader.skipUnknown(key, &names)
        } else {
          _ = try key.text()
          try reader.skip()
        }
      }
    case 0x5B:
      try array { (reader) throws(MalformedMessage) in
        try reader.skip(refusingRepeats: refusingRepeats)
      }
    case 0x22: _ = try string()
    case 0x74: try literal("true")
    case 0x66: try literal("false")
    case 0x6E: try literal("null")
    default: _ = try numberSpan()
    }
    return UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start..<position]))
  }

  /// Skips an unknown member of an object without duplicate members.
  /// - Parameter names: The earlier unknown members of the object.
  package mutating func skipUnknown(
    _ key: JSONKey, _ names: inout Set<[UInt8]>
  ) throws(MalformedMessage) {
    guard names.insert(Array(try key.text().utf8)).inserted else {
      throw malformed("a member is a duplicate")
    }
    try skip(refusingRepeats: true)
  }

  // MARK: Scalars

  /// Consumes `null` if it comes next.
  package mutating func null() throws(MalformedMessage) -> Bool {
    guard try peek() == 0x6E else { return false }
    try literal("null")
    return true
  }

  package mutating func bool() throws(MalformedMessage) -> Bool {
    if try peek() == 0x74 {
      try literal("true")
      return true
    }
    try literal("false")
    return false
  }

  /// Returns a name from outside: of a table, a column or a record.
  package mutating func name() throws(MalformedMessage) -> Name { Name(try string()) }

  package mutating func string() throws(MalformedMessage) -> String {
    let span = try stringSpan()
    do throws(MalformedMessage) {
      return try span.text()
    } catch {
      throw malformed(error.reason)
    }
  }

  package mutating func uniqueID() throws(MalformedMessage) -> UniqueID {
    let span = try stringSpan()
    guard let id = UniqueID(utf8: span.content) else { throw malformed("not a UUID") }
    return id
  }

  package mutating func timestamp() throws(MalformedMessage) -> HybridTimestamp {
    let span = try stringSpan()
    guard let time = HybridTimestamp(utf8: span.content) else {
      throw malformed("not a timestamp of 16 hexadecimal digits")
    }
    return time
  }

  /// Reads a string with one of a few words, without creating a `String`.
  package mutating func word() throws(MalformedMessage) -> JSONKey {
    try JSONKey(try stringSpan())
  }

  /// Reads a 64-bit integer in a string.
  package mutating func integerString() throws(MalformedMessage) -> Int64 {
    let span = try stringSpan()
    guard let value = parseInteger(span.content) else {
      throw malformed("not a 64-bit integer in a string")
    }
    return value
  }

  package mutating func integer() throws(MalformedMessage) -> Int64 {
    let (digits, isInteger) = try numberSpan()
    guard isInteger, let value = parseInteger(digits) else {
      throw malformed("not a 64-bit integer")
    }
    return value
  }

  /// Reads a count: 0 to 2^31 - 1, so sums of counts never overflow.
  package mutating func count() throws(MalformedMessage) -> Int {
    let value = try integer()
    guard 0...Int64(Int32.max) ~= value else { throw malformed("\(value) is no count") }
    return Int(value)
  }

  /// Returns a wall clock's reading in milliseconds since 1970, in the 48 bits for the clock within
  /// a time.
  package mutating func wallTime() throws(MalformedMessage) -> Int64 {
    let value = try integer()
    guard 0...Limits.wallTimeMax ~= value else {
      throw malformed("\(value) ms since 1970 is no time from 1970 to 10889")
    }
    return value
  }

  /// Returns a number: an integer when it has neither point nor exponent.
  package mutating func number() throws(MalformedMessage) -> Value {
    let (digits, isInteger) = try numberSpan()
    if isInteger {
      guard let value = parseInteger(digits) else { throw malformed("an integer above 64 bits") }
      return .integer(value)
    }
    guard let value = Double(String(decoding: digits, as: UTF8.self)), value.isFinite else {
      throw malformed("a number that no double can hold")
    }
    return .real(value)
  }

  /// Reads standard base64 as bytes.
  package mutating func base64() throws(MalformedMessage) -> [UInt8] {
    let span = try stringSpan()
    guard !span.isEscaped, let blob = Base64.decode(span.content) else {
      throw malformed("not base64 (RFC 4648 §4)")
    }
    return blob
  }

  // MARK: Lexing

  @inline(__always)
  private mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default: return
      }
    }
  }

  private mutating func open(_ bracket: UInt8, _ what: String) throws(MalformedMessage) {
    guard try peek() == bracket else { throw malformed("\(what) was expected") }
    guard depth > 0 else { throw malformed("nested too deep") }
    depth -= 1
    position += 1
  }

  @inline(__always)
  private mutating func closes(_ bracket: UInt8) throws(MalformedMessage) -> Bool {
    guard try peek() == bracket else { return false }
    depth += 1
    position += 1
    return true
  }

  @inline(__always)
  private mutating func continues(before bracket: UInt8) throws(MalformedMessage) -> Bool {
    if try closes(bracket) { return false }
    try expect(0x2C, "',' or the end of an object or array")
    return true
  }

  @inline(__always)
  private mutating func expect(_ byte: UInt8, _ what: String) throws(MalformedMessage) {
    guard try peek() == byte else { throw malformed("\(what) was expected") }
    position += 1
  }

  private mutating func literal(_ text: StaticString) throws(MalformedMessage) {
    let count = text.utf8CodeUnitCount
    _ = try peek()
    guard position + count <= bytes.count,
      UnsafeBufferPointer(rebasing: bytes[position..<position + count]).isEqual(to: text)
    else { throw malformed("'\(text)' was expected") }
    position += count
  }

  /// Returns the characters between the quotes.
  @inline(__always)
  private mutating func stringSpan() throws(MalformedMessage) -> JSONSpan {
    guard try peek() == 0x22 else { throw malformed("a string was expected") }
    position += 1
    let start = position
    var (isEscaped, isASCII) = (false, true)
    while position < bytes.count {
      position = bytes.plainEnd(from: position, isASCII: &isASCII)
      guard position < bytes.count else { break }
      switch bytes[position] {
      case 0x22:
        let content = UnsafeBufferPointer(rebasing: bytes[start..<position])
        position += 1
        return JSONSpan(content: content, isEscaped: isEscaped, isASCII: isASCII)
      case 0x5C:
        isEscaped = true
        position += 2
      default: throw malformed("a control character in a string")
      }
    }
    throw malformed("a string without an end")
  }

  @inline(__always)
  private mutating func numberSpan() throws(MalformedMessage)
    -> (digits: UnsafeBufferPointer<UInt8>, isInteger: Bool)
  {
    _ = try peek()
    let start = position
    var isInteger = true
    if at(0x2D) { position += 1 }
    if at(0x30) {
      position += 1
    } else {
      try digits()
    }
    if at(0x2E) {
      isInteger = false
      position += 1
      try digits()
    }
    if at(0x65) || at(0x45) {
      isInteger = false
      position += 1
      if at(0x2B) || at(0x2D) { position += 1 }
      try digits()
    }
    return (UnsafeBufferPointer(rebasing: bytes[start..<position]), isInteger)
  }

  private func at(_ byte: UInt8) -> Bool { position < bytes.count && bytes[position] == byte }

  private mutating func digits() throws(MalformedMessage) {
    let start = position
    while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
    guard position > start else { throw malformed("a value was expected") }
  }

  private func parseInteger(_ digits: UnsafeBufferPointer<UInt8>) -> Int64? {
    let negative = digits.first == 0x2D
    let start = negative ? 1 : 0
    guard digits.count > start, digits.count <= 20 else { return nil }
    var value: Int64 = 0
    for index in start..<digits.count {
      let digit = digits[index]
      guard (0x30...0x39).contains(digit) else { return nil }
      let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
      let (next, overflowed) = scaled.subtractingReportingOverflow(Int64(digit - 0x30))
      guard !overflow, !overflowed else { return nil }
      value = next
    }
    if negative { return value }
    return value == .min ? nil : -value
  }
}
