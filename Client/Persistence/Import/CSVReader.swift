import FerryProtocol

/// A reader of separated values with a header line (RFC 4180). Quoted fields may contain
/// separators, line breaks and doubled quotes. An empty field without quotes is NULL; with quotes it is
/// empty.
struct CSVReader {
  private let bytes: UnsafeBufferPointer<UInt8>
  private let separator: UInt8
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer, separator: CSVSeparator = .comma) {
    self.separator = separator.byte
    self.bytes = bytes.bindMemory(to: UInt8.self)
    if self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  consuming func read(_ row: ([Column], Int) throws -> Void) throws {
    var reader = self
    guard let header = try reader.record(1) else { return }
    var names: [Name] = []
    for field in header {
      guard case .text(let text) = field, !text.isEmpty else {
        throw ImportError("the header line has a column without a name")
      }
      let name = Name(text)
      guard !names.contains(name) else {
        throw ImportError("the header line names column \(name) twice")
      }
      names.append(name)
    }
    var number = 1
    while true {
      number += 1
      guard let fields = try reader.record(number) else { return }
      if fields == [.null] { continue }
      guard fields.count == names.count else {
        throw ImportError(
          "record \(number) has \(fields.count) fields; the header line has \(names.count)")
      }
      try row(zip(names, fields).map { Column($0, $1) }, reader.position)
    }
  }

  private mutating func record(_ number: Int) throws -> [Value]? {
    guard position < bytes.count else { return nil }
    var fields: [Value] = []
    while true {
      fields.append(try field(number))
      guard position < bytes.count else { return fields }
      let end = bytes[position]
      position += 1
      if end == separator {
        if position == bytes.count {
          fields.append(.null)
          return fields
        }
        continue
      }
      if end == 0x0D, position < bytes.count, bytes[position] == 0x0A { position += 1 }
      return fields
    }
  }

  /// Returns true if a field without quotes ends before the byte.
  private func isEnd(_ byte: UInt8) -> Bool {
    byte == separator || byte == 0x0A || byte == 0x0D
  }

  /// Reads one field; stops at the separator or line end after it.
  private mutating func field(_ number: Int) throws -> Value {
    guard position < bytes.count, bytes[position] == 0x22 else {
      let start = position
      while position < bytes.count, !isEnd(bytes[position]) { position += 1 }
      return position == start ? .null : try text(bytes[start..<position], number)
    }
    position += 1
    var content: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      guard byte == 0x22 else {
        content.append(byte)
        continue
      }
      guard position < bytes.count, bytes[position] == 0x22 else {
        guard position == bytes.count || isEnd(bytes[position]) else {
          throw ImportError("record \(number) has text after a closing quote")
        }
        return try text(content, number)
      }
      content.append(0x22)
      position += 1
    }
    throw ImportError("record \(number) has a quoted field without an end")
  }

  private func text(_ content: some Sequence<UInt8>, _ number: Int) throws -> Value {
    guard let text = String(validating: content, as: UTF8.self) else {
      throw ImportError("record \(number) is not valid UTF-8")
    }
    return .text(text)
  }
}
