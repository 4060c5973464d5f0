// Names and texts from outside in SQL, for SQLite and PostgreSQL. No other code quotes.
//
// All functions work on bytes. A quote behind a prepended mark (U+0600), or before a combining one,
// is no `Character` of its own, and both databases end a name or a text there.

/// Returns a name as an identifier of SQLite or PostgreSQL: in double quotes, with each quote in it
/// doubled.
///
/// Names have no U+0000 (``NameRule``). Both databases refuse SQL with this character.
package func quoted(_ name: Name) -> String { doubling("\"", in: name.text) }

/// Returns identifiers of SQLite or PostgreSQL, separated by commas.
package func quoted(list names: some Sequence<Name>) -> String {
  names.map { quoted($0) }.joined(separator: ", ")
}

/// Returns a text as a literal of SQLite: in single quotes, with each quote in it doubled.
package func quoted(literal text: String) -> String { doubling("'", in: text) }

/// Returns bytes as a literal of SQLite, in hexadecimal digits.
package func quoted(blob bytes: some Sequence<UInt8>) -> String {
  var digits: [UInt8] = []
  for byte in bytes { digits += [hexDigit(UInt64(byte >> 4)), hexDigit(UInt64(byte))] }
  return "x'" + String(decoding: digits, as: UTF8.self) + "'"
}

/// Returns a text as a literal of PostgreSQL, with each quote and each backslash doubled. It does
/// not depend on `standard_conforming_strings`.
package func quoted(postgres text: String) -> String {
  var quoted: [UInt8] = [UInt8(ascii: "E"), UInt8(ascii: "'")]
  quoted.reserveCapacity(text.utf8.count + 3)
  for byte in text.utf8 {
    if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\\") { quoted.append(byte) }
    quoted.append(byte)
  }
  quoted.append(UInt8(ascii: "'"))
  return String(decoding: quoted, as: UTF8.self)
}

private func doubling(_ mark: Unicode.Scalar, in text: String) -> String {
  let (quote, mark) = (String(mark), UInt8(ascii: mark))
  // Few names contain a quote.
  guard text.utf8.contains(mark) else { return quote + text + quote }
  var quoted: [UInt8] = [mark]
  quoted.reserveCapacity(text.utf8.count + 2)
  for byte in text.utf8 {
    if byte == mark { quoted.append(mark) }
    quoted.append(byte)
  }
  quoted.append(mark)
  return String(decoding: quoted, as: UTF8.self)
}
