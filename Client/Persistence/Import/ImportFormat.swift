import FerryPlatform
import FerryProtocol

/// The format of a file's rows.
package enum ImportFormat: String, Sendable, CaseIterable {
  /// JSON: one array of objects, or an object with one array as its only array member.
  case json
  /// JSON lines: one object a line.
  case jsonl
  /// CSV: RFC 4180 with a header line, and a comma or another separator.
  case csv

  /// Returns the format by the file's name or, if the name shows none, by the first byte.
  package static func guess(path: String, firstByte: UInt8?) -> ImportFormat {
    let name = path.lowercasedASCII
    if name.ends(with: ".csv") || name.ends(with: ".tsv") { return .csv }
    if name.ends(with: ".jsonl") || name.ends(with: ".ndjson") { return .jsonl }
    if name.ends(with: ".json") { return .json }
    return firstByte == 0x5B || firstByte == 0x7B ? .json : .csv
  }
}

/// Reads the rows of a file one by one, in the file's order.
package struct ImportReader: Sendable {
  /// The format of the file.
  package let format: ImportFormat
  /// The separator of CSV.
  private let separator: CSVSeparator

  package init(format: ImportFormat, separator: CSVSeparator = .comma) {
    self.format = format
    self.separator = separator
  }

  /// Calls `row` with each row's columns and with the bytes read so far.
  ///
  /// - Throws: ``ImportError`` with the row; the error of `row`.
  package func read(
    _ bytes: UnsafeRawBufferPointer, row: ([Column], Int) throws -> Void
  ) throws {
    switch format {
    case .json: try readDocument(bytes, row)
    case .jsonl: try readLines(bytes, row)
    case .csv: try CSVReader(bytes, separator: separator).read(row)
    }
  }

  // MARK: JSON

  private static let depth = 64

  private func readDocument(
    _ bytes: UnsafeRawBufferPointer, _ row: ([Column], Int) throws -> Void
  ) throws {
    var reader = JSONReader(bytes, depth: Self.depth)
    var outcome: (any Error)?
    do {
      if try reader.peek() == 0x5B {
        try readArray(&reader, row, &outcome)
      } else {
        try readWrapped(&reader, row, &outcome)
      }
      try reader.end()
    } catch {
      throw outcome ?? ImportError("the file is not JSON: \(error)")
    }
  }

  /// Reads an object around the array, as in {"3166-2": [ … ]}.
  private func readWrapped(
    _ reader: inout JSONReader, _ row: ([Column], Int) throws -> Void,
    _ outcome: inout (any Error)?
  ) throws(MalformedMessage) {
    var arrays = 0
    try reader.object { (_, reader) throws(MalformedMessage) in
      guard try reader.peek() == 0x5B else {
        try reader.skip()
        return
      }
      arrays += 1
      guard arrays == 1 else { throw reader.malformed("the object contains more than one array") }
      try readArray(&reader, row, &outcome)
    }
    guard arrays == 1 else { throw reader.malformed("the object contains no array of rows") }
  }

  private func readArray(
    _ reader: inout JSONReader, _ row: ([Column], Int) throws -> Void,
    _ outcome: inout (any Error)?
  ) throws(MalformedMessage) {
    try reader.array { (reader) throws(MalformedMessage) in
      let columns = try reader.importedRow()
      do {
        try row(columns, reader.position)
      } catch {
        outcome = error
        throw reader.malformed("stopped")
      }
    }
  }

  private func readLines(
    _ bytes: UnsafeRawBufferPointer, _ row: ([Column], Int) throws -> Void
  ) throws {
    var start = 0
    var number = 0
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
      number += 1
      let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      start = end + 1
      guard line.contains(where: { $0 > 0x20 }) else { continue }
      var reader = JSONReader(line, depth: Self.depth)
      let columns: [Column]
      do {
        columns = try reader.importedRow()
        try reader.end()
      } catch {
        throw ImportError("line \(number) is not a JSON object: \(error)")
      }
      try row(columns, min(start, bytes.count))
    }
  }
}

extension JSONReader {
  /// Reads an object as columns: `true` and `false` become 1 and 0, nested arrays and objects their
  /// own JSON text.
  fileprivate mutating func importedRow() throws(MalformedMessage) -> [Column] {
    guard try peek() == 0x7B else { throw malformed("a row is an object") }
    var columns: [Column] = []
    try object { (key, reader) throws(MalformedMessage) in
      let name = try key.name()
      let value = try reader.importedValue()
      guard !columns.contains(where: { $0.name == name }) else {
        throw reader.malformed("column \(name) occurs twice in one row")
      }
      columns.append(Column(name, value))
    }
    return columns
  }

  private mutating func importedValue() throws(MalformedMessage) -> Value {
    switch try peek() {
    case 0x22: return .text(try string())
    case 0x74, 0x66: return .integer(try bool() ? 1 : 0)
    case 0x6E:
      _ = try null()
      return .null
    case 0x5B, 0x7B: return .text(String(decoding: try skip(), as: UTF8.self))
    default: return try number()
    }
  }
}
