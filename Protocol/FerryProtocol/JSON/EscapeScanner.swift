/// Resolves the escapes of a string's content.
func unescape(
  _ content: UnsafeBufferPointer<UInt8>
) throws(MalformedMessage) -> String {
  var scanner = EscapeScanner(content: content)
  let resolved = try scanner.resolve()
  guard let text = resolved.withUnsafeBufferPointer(validText) else {
    throw MalformedMessage(reason: "a string is not valid UTF-8", offset: 0)
  }
  return text
}

private struct EscapeScanner {
  let content: UnsafeBufferPointer<UInt8>
  var index = 0

  mutating func resolve() throws(MalformedMessage) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(content.count)
    while index < content.count {
      let byte = content[index]
      index += 1
      guard byte == 0x5C else {
        text.append(byte)
        continue
      }
      guard index < content.count else { throw bad() }
      let escape = content[index]
      index += 1
      switch escape {
      case 0x22, 0x5C, 0x2F: text.append(escape)
      case 0x62: text.append(0x08)
      case 0x66: text.append(0x0C)
      case 0x6E: text.append(0x0A)
      case 0x72: text.append(0x0D)
      case 0x74: text.append(0x09)
      case 0x75: text.append(contentsOf: try scalar().utf8)
      default: throw bad()
      }
    }
    return text
  }

  private func bad() -> MalformedMessage {
    MalformedMessage(reason: "an escape that JSON does not have", offset: index)
  }

  private mutating func scalar() throws(MalformedMessage) -> String {
    let first = try unit()
    if (0xD800...0xDBFF).contains(first) {
      guard index + 1 < content.count, content[index] == 0x5C, content[index + 1] == 0x75 else {
        throw MalformedMessage(reason: "half a surrogate pair", offset: index)
      }
      index += 2
      let second = try unit()
      guard (0xDC00...0xDFFF).contains(second) else {
        throw MalformedMessage(reason: "half a surrogate pair", offset: index)
      }
      return try character(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }
    return try character(first)
  }

  private func character(_ code: UInt32) throws(MalformedMessage) -> String {
    guard let scalar = Unicode.Scalar(code) else {
      throw MalformedMessage(reason: "half a surrogate pair", offset: index)
    }
    return String(scalar)
  }

  private mutating func unit() throws(MalformedMessage) -> UInt32 {
    guard index + 4 <= content.count else { throw bad() }
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = hexValue(content[index]) else { throw bad() }
      value = value << 4 | UInt32(digit)
      index += 1
    }
    return value
  }
}
