import FerryProtocol

extension Value {
  /// The value as SQL source text, with the same storage class.
  package var sqlLiteral: String {
    switch self {
    case .null: "NULL"
    case .integer(let integer): String(integer)
    case .real(let real): Self.literal(real)
    case .text(let text):
      // SQL text ends at U+0000; as a blob's bytes it passes.
      text.utf8.contains(0)
        ? "CAST(\(quoted(blob: text.utf8)) AS TEXT)"
        : quoted(literal: text)
    case .blob(let bytes): quoted(blob: bytes)
    }
  }

  private static func literal(_ real: Double) -> String {
    if real.isInfinite { return real < 0 ? "-9e999" : "9e999" }
    return real.description
  }
}
