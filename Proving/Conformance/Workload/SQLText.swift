import FerryProtocol

extension Value {
  /// The value as SQL source text that yields it in its storage class.
  package var sqlLiteral: String {
    switch self {
    case .null: "NULL"
    case .integer(let integer): String(integer)
    case .real(let real): Self.literal(real)
    case .text(let text):
      // SQL text ends at U+0000; as a blob's bytes it passes.
      text.utf8.contains(0)
        ? "CAST(\(Self.literal(text.utf8)) AS TEXT)"
        : quoted(literal: text)
    case .blob(let bytes): Self.literal(bytes)
    }
  }

  private static func literal(_ real: Double) -> String {
    if real.isInfinite { return real < 0 ? "-9e999" : "9e999" }
    return real.description
  }

  private static func literal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = bytes.map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
    return "x'\(digits.joined())'"
  }
}
