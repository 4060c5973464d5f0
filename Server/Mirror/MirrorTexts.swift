import FerryCryptography
import FerryPlatform
import FerryPostgres
import FerryProtocol

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

extension MirrorTable {
  private static func isCanonicalUUID(_ text: String) -> Bool {
    // Runs for each value.
    text.utf8.count == 36
      && text.utf8.enumerated().allSatisfy { place, byte in
        [8, 13, 18, 23].contains(place)
          ? byte == UInt8(ascii: "-")
          : (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
      }
  }

  /// Returns the texts of a key for PostgreSQL to read.
  func texts(ofKey values: [Value]) throws(MirrorFault) -> [String?] {
    var texts: [String?] = []
    for (column, value) in zip(key, values) {
      let text = try column.text(of: value)
      if column.type == .uuid, let text, !Self.isCanonicalUUID(text) {
        throw MirrorFault(
          description: "column \(column.name): PostgreSQL writes the UUID “\(text.prefix(40))” in "
            + "another form, and so as another key")
      }
      if case .carried = column.type, text?.utf8.last == UInt8(ascii: " ") {
        throw MirrorFault(
          description:
            "column \(column.name): PostgreSQL does not keep blanks at the end of a text "
            + "with a fixed length, and so has another key")
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
