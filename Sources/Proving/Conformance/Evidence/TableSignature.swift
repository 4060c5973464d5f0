import Synchronization

/// The signature of a tracked table: `VERSION:IDENTITY`, and then key and columns, separated by
/// commas. A column is `"HERE"` or `"HERE" AS "IN THE SPACE"`, after the mark of an increment; and
/// ` OF "TABLE"` if it holds this table's numbers. The condition of the space's rows is at the end,
/// if the table has rows of several.
struct TableSignature {
  /// The keys and the other columns as expressions of SQL, with their names in the space.
  private let keys: [String]
  private let columns: [(sql: String, name: String)]
  private let identity: String
  private let quotedTable: String
  /// True if the table has rows of several spaces.
  private let isShared: Bool

  /// Those read before: a run reads the same ones for each look.
  private static let known = Mutex<[String: TableSignature]>([:])

  /// Returns the signature of a table with so many key columns.
  static func read(_ signature: String, keys count: Int, quotedTable: String) -> TableSignature {
    known.withLock { known in
      let name = quotedTable + signature
      if let found = known[name] { return found }
      if known.count > 1_000 { known = [:] }
      let made = TableSignature(signature, keys: count, quotedTable: quotedTable)
      known[name] = made
      return made
    }
  }

  private init(_ signature: String, keys count: Int, quotedTable: String) {
    let parts = Self.parts(signature)
    self.quotedTable = quotedTable
    isShared = parts.last?.hasPrefix("(") ?? false
    identity = parts[0].split(separator: ":").last.map(String.init) ?? ""
    keys = parts.dropFirst().prefix(count).map { Self.column($0).sql }
    columns = parts.dropFirst(1 + count).filter { !$0.hasPrefix("(") }.map(Self.column)
  }

  /// Returns the list of a SELECT: the record's identifier, and the columns by their names in the
  /// space. It needs no functions of Ferry's.
  func selection(without names: [String]) -> String {
    let record =
      switch identity {
      case "mapped" where isShared: SharedTable.record(of: keys[0], in: quotedTable)
      case "mapped": Self.record(of: keys[0], in: quotedTable)
      case "value":
        "'[' || \(keys.map { "json_quote(\($0))" }.joined(separator: " || ',' || ")) || ']'"
      default: keys[0]
      }
    let rest = columns.filter { !names.contains($0.name) }.map { "\($0.sql) AS \($0.name)" }
    return ([record] + rest).joined(separator: ", ")
  }

  private static func record(of number: String, in table: String) -> String {
    "(SELECT record FROM ferry_keys WHERE tbl = \(table) AND number = \(number))"
  }

  private static func column(_ part: String) -> (sql: String, name: String) {
    let names = part.drop { $0 == "+" || $0 == "~" }
    let pieces = names.split(separator: " OF ")
    let places = (pieces.first ?? names).split(separator: " AS ").map(String.init)
    let (place, name) = (places.first ?? "", places.last ?? "")
    guard pieces.count > 1 else { return (place, name) }
    let table = "'" + pieces[1].dropFirst().dropLast() + "'"
    return (record(of: place, in: table), name)
  }

  /// Splits at unquoted commas.
  private static func parts(_ signature: String) -> [String] {
    var isQuoted = false
    return signature.split(omittingEmptySubsequences: false) { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }.map(String.init)
  }
}
