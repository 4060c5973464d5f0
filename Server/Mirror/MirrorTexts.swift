import FerryCryptography
import FerryPlatform
import FerryPostgres
import FerryProtocol
import Foundation

extension PostgresError {
  /// True if a row's values are the reason: a data exception, a violated constraint, a size that an
  /// index cannot hold, or an error in a trigger.
  var isAboutRow: Bool {
    guard kind == .server, let sqlState else { return false }
    if ["22", "23", "54", "P0"].contains(where: { sqlState.begins(with: $0) }) { return true }
    // A trigger's function lacks a right: no row is at fault.
    if isAboutRights, !isRaised { return false }
    // A trigger may raise an error of any class. The classes below concern the connection, the
    // transaction, locks, resources and the server, and so every row.
    return context != nil && sqlState != "55P03"
      && !["08", "25", "40", "53", "57", "58", "XX"].contains(where: { sqlState.begins(with: $0) })
  }
}

extension PostgresError {
  /// True if a function in PL/pgSQL raised it itself, by `RAISE`.
  fileprivate var isRaised: Bool { sourceFunction == "exec_stmt_raise" }
}

extension MirrorColumn {
  /// Returns the reason if PostgreSQL writes a text of a key in another form, and so has another key.
  /// It also cannot read some of these texts.
  fileprivate func obstacle(toKey text: String) -> String? {
    switch type {
    case .uuid where !Self.isCanonicalUUID(text):
      "PostgreSQL writes the UUID “\(text.prefix(40))” in another form, and so as another key"
    case .date where !isCanonicalTime(text), .timestamp where !isCanonicalTime(text),
      .timestamptz where !isCanonicalTime(text):
      "PostgreSQL writes the time “\(text.prefix(40))” in another form, and so as another key"
    case .carried where text.utf8.last == UInt8(ascii: " "):
      "PostgreSQL does not keep blanks at the end of a text with a fixed length, and so has another "
        + "key"
    default: nil
    }
  }

  private static func isCanonicalUUID(_ text: String) -> Bool {
    // Runs for each value.
    text.utf8.count == 36
      && text.utf8.enumerated().allSatisfy { place, byte in
        [8, 13, 18, 23].contains(place)
          ? byte == UInt8(ascii: "-")
          : (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
      }
  }

  private func isCanonicalTime(_ text: String) -> Bool {
    let form =
      switch type {
      case .date: "0000-00-00"
      case .timestamp: "0000-00-00T00:00:00.000000"
      default: "0000-00-00T00:00:00.000000Z"
      }
    let bytes = Array(text.utf8)
    guard bytes.count == form.utf8.count,
      zip(bytes, form.utf8).allSatisfy({ byte, form in
        form == UInt8(ascii: "0") ? (0x30...0x39).contains(byte) : byte == form
      })
    else { return false }
    let number = { (range: Range<Int>) in bytes[range].reduce(0) { $0 * 10 + Int($1) - 0x30 } }
    let (year, month, day) = (number(0..<4), number(5..<7), number(8..<10))
    guard year > 0, (1...12).contains(month), day > 0 else { return false }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let days = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard day <= days else { return false }
    return type == .date || number(11..<13) < 24 && number(14..<16) < 60 && number(17..<19) < 60
  }
}

extension MirrorTable {
  /// Returns the texts of a key for PostgreSQL to read.
  func texts(ofKey values: [Value]) throws(MirrorFault) -> [String?] {
    var texts: [String?] = []
    for (column, value) in zip(key, values) {
      let text = try column.text(of: value)
      if let text, let reason = column.obstacle(toKey: text) {
        throw MirrorFault(description: "column \(column.name): \(reason)")
      }
      texts.append(text)
    }
    return texts
  }

  /// - Throws: ``MirrorFault`` if a key belongs to another space.
  func checkSpace(ofKey texts: [String?]) throws(MirrorFault) {
    guard let space = adoption?.space else { return }
    for (column, text) in zip(key, texts) where column.name == Name(space.name) {
      guard text.map({ Name($0) }) != Name(space.value) else { continue }
      throw MirrorFault(
        description: "column \(column.name) names another space: \(text ?? "NULL")")
    }
  }

  /// Returns the texts of the columns beside the key for PostgreSQL to read.
  func texts(ofColumns values: [Value]) throws(MirrorFault) -> [String?] {
    var texts: [String?] = []
    for (column, value) in zip(columns, values) { texts.append(try column.text(of: value)) }
    return texts
  }

  /// Returns the values of a key written by PostgreSQL.
  func values(ofKey texts: [String?]) throws(MirrorFault) -> [Value] {
    var values: [Value] = []
    for (column, text) in zip(key, texts) { values.append(try column.value(of: text)) }
    return values
  }
}

extension Value {
  /// The value of a key as a text, for people and for another try.
  var keyText: String? {
    switch self {
    case .null: return nil
    case .integer(let number): return String(number)
    case .real(let number): return "\(number)"
    case .text(let text): return text
    case .blob(let bytes): return Hexadecimal.text(bytes)
    }
  }
}

extension MirrorTable {
  /// Returns the texts of the key with this identifier (SPEC.md §27).
  func key(ofRecord record: String) -> [String?]? {
    guard key.count > 1 else { return [record] }
    let parts = try? JSONDecoder().decode([KeyPart].self, from: Data(record.utf8))
    return parts?.count == key.count ? parts?.map(\.text) : nil
  }

  private struct KeyPart: Decodable {
    let text: String

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int64.self) {
        text = String(number)
      } else {
        text = try container.decode(String.self)
      }
    }
  }
}
