import FerryProtocol
import FerrySQLite

/// Copies of empty tables, filled beside them: tables `ferry_first_1` and so on. An exchange moves
/// the rows of each copy to the original table.
///
/// A copy has the statement of the original table but for names, so both store rows and indexes in
/// the same way. The exchange swaps the places of their b-trees in the file (`rootpage` in
/// `sqlite_schema`). Names, triggers, views and foreign keys stay unchanged, and more rows take no
/// more time.
struct ShadowTables {
  /// A table and the copy.
  struct Pair: Equatable {
    let local: Name
    let copy: Name
    /// The table, its indexes and the user's triggers at the time of the copy.
    let definition: String
    /// The names of the table and the indexes in the schema, and of their copies.
    let objects: [(own: Name, copy: Name)]

    static func == (one: Pair, other: Pair) -> Bool {
      one.local == other.local && one.copy == other.copy && one.definition == other.definition
    }
  }

  let connection: SQLiteConnection

  private static let prefix = "ferry_first_"

  // MARK: Making and dropping

  /// Creates the copies. Returns `nil` if a definition of a table cannot be copied.
  ///
  /// - Parameter tables: the tables by their names here, folded.
  func create(_ tables: [Name]) throws -> [Pair]? {
    let copies = Dictionary(
      uniqueKeysWithValues: tables.enumerated().map { ($1, name("\($0 + 1)")) })
    var pairs: [Pair] = []
    for table in tables {
      guard let copy = copies[table], let pair = try create(copy, of: table, copies) else {
        return nil
      }
      pairs.append(pair)
    }
    return pairs
  }

  private func create(_ copy: Name, of table: Name, _ copies: [Name: Name]) throws -> Pair? {
    let objects = try objects(of: table)
    guard let own = objects.first(where: { $0.isTable }), let sql = own.sql,
      let create = ShadowSQL(sql).table(own.name, as: copy, parents: copies)
    else { return nil }
    try connection.execute(single: create)
    var pairs = [(own: own.name, copy: copy)]
    for (number, index) in objects.filter({ !$0.isTable && $0.sql != nil }).enumerated() {
      let name = Name("\(copy)_\(number + 1)")
      guard let sql = index.sql,
        let create = ShadowSQL(sql).index(of: own.name, as: name, on: copy)
      else { return nil }
      try connection.execute(single: create)
      pairs.append((index.name, name))
    }
    // SQLite names the indexes of UNIQUE and PRIMARY KEY by their numbers in the table.
    let automatic = objects.filter(\.isAutomatic).sorted { $0.number < $1.number }
    let copied = try self.objects(of: copy).filter(\.isAutomatic).sorted { $0.number < $1.number }
    guard automatic.map(\.number) == copied.map(\.number) else { return nil }
    pairs += zip(automatic, copied).map { ($0.name, $1.name) }
    return Pair(
      local: own.name, copy: copy, definition: try definition(of: own.name), objects: pairs)
  }

  /// Drops all copies, such as those left by a killed process.
  func drop() throws {
    for name in try existing() { try connection.execute(single: "DROP TABLE main.\(quoted(name))") }
  }

  /// Returns true if there are copies.
  func isAny() throws -> Bool { try !existing().isEmpty }

  /// Whether a table is a copy, also one of another space of the file.
  static func isCopy(_ table: Name) -> Bool {
    let parts = table.text.utf8.split(
      separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
    let isNumbered = parts.count == 4
    guard isNumbered || parts.count == 3 else { return false }
    func isNumber(_ part: Substring.UTF8View) -> Bool {
      !part.isEmpty && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    return parts[0].elementsEqual("ferry".utf8) && (!isNumbered || isNumber(parts[1]))
      && parts[parts.count - 2].elementsEqual("first".utf8) && isNumber(parts[parts.count - 1])
  }

  private func existing() throws -> [Name] {
    let own = connection.namespace.name(Self.prefix)
    return try connection.rows(
      """
      SELECT name FROM sqlite_schema
      WHERE type = 'table' AND substr(name, 1, ?1) = ?2
        AND substr(name, ?1 + 1) NOT GLOB '*[^0-9]*' ORDER BY name
      """, Int64(own.utf8.count), own
    ) { $0.name(0) }
  }

  private func name(_ suffix: String) -> Name {
    Name(connection.namespace.name(Self.prefix + suffix))
  }

  // MARK: Reading

  /// Returns the definitions of a table, its indexes and the user's triggers, with their places in
  /// the file.
  func definition(of table: Name) throws -> String {
    try connection.rows(
      """
      SELECT type || ' ' || name || ' ' || rootpage || ' ' || ifnull(sql, '') FROM sqlite_schema
      WHERE tbl_name = ? COLLATE NOCASE
        AND NOT (type = 'trigger' AND substr(name, 1, 6) = 'ferry_') ORDER BY type, name
      """, table
    ) { $0.text(0) }.joined(separator: "\n")
  }

  /// Returns true if a trigger of the user is on a table.
  func hasUserTriggers(_ table: Name) throws -> Bool {
    let condition =
      "type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND substr(name, 1, 6) <> 'ferry_'"
    if try connection.exists("SELECT 1 FROM sqlite_schema WHERE \(condition)", table) {
      return true
    }
    // Queried only if the schema exists: the query would create it.
    let databases = try connection.rows("PRAGMA database_list") { $0.text(1) }
    return try databases.contains(where: { $0 == "temp" })
      && connection.exists("SELECT 1 FROM sqlite_temp_schema WHERE \(condition)", table)
  }

  private struct Object {
    let name: Name
    let isTable: Bool
    let sql: String?
    let place: Int64

    /// True if it is an index of UNIQUE or PRIMARY KEY.
    var isAutomatic: Bool { !isTable && sql == nil }

    /// The number at the end of the name.
    var number: Int {
      let digits = name.text.utf8.reversed().prefix { $0 != UInt8(ascii: "_") }.reversed()
      return Int(String(decoding: digits, as: UTF8.self)) ?? 0
    }
  }

  private func objects(of table: Name) throws -> [Object] {
    try connection.rows(
      """
      SELECT name, type, sql, rootpage FROM sqlite_schema
      WHERE tbl_name = ? COLLATE NOCASE AND type IN ('table', 'index') ORDER BY rowid
      """, table
    ) { row in
      Object(
        name: row.name(0), isTable: row.text(1) == "table", sql: row.optionalText(2),
        place: row.int64(3))
    }
  }

  // MARK: Exchanging

  /// Gives the rows of the copies to their tables. Part of a transaction.
  ///
  /// - Parameter dropsCopies: whether the copies are dropped at once.
  /// - Throws: ``FirstListOutdated`` if a table, a copy or an index has changed meanwhile.
  func exchange(_ pairs: [Pair], dropsCopies: Bool) throws {
    var places: [(name: Name, place: Int64)] = []
    for pair in pairs {
      guard try definition(of: pair.local) == pair.definition else { throw FirstListOutdated() }
      let known = try objects(of: pair.local) + objects(of: pair.copy)
      for (own, copy) in pair.objects {
        guard let one = known.first(where: { $0.name == own }),
          let other = known.first(where: { $0.name == copy })
        else { throw FirstListOutdated() }
        places += [(own, other.place), (copy, one.place)]
      }
    }
    try swap(places)
    guard dropsCopies else { return }
    for pair in pairs { try connection.execute(single: "DROP TABLE main.\(quoted(pair.copy))") }
  }

  /// Throws if SQLite permits no exchange in this file (SQLITE_DBCONFIG_DEFENSIVE).
  func checkExchange() throws {
    defer { forgetSchema() }
    try connection.execute("PRAGMA writable_schema=ON")
    try connection.execute("UPDATE sqlite_schema SET rootpage = rootpage WHERE 0")
  }

  /// Forgets the schema as this connection knows it. After an exchange that was rolled back, it may know the
  /// places of the exchange by a version of the schema that another process uses for other changes.
  func forgetSchema() { try? connection.execute("PRAGMA writable_schema=RESET") }

  /// Sets the places of b-trees, and lets every connection read the schema again.
  private func swap(_ places: [(name: Name, place: Int64)]) throws {
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    defer { forgetSchema() }
    try connection.execute("PRAGMA writable_schema=ON")
    let update = try connection.prepare(
      "UPDATE sqlite_schema SET rootpage = ? WHERE name = ? AND type IN ('table', 'index')")
    for (name, place) in places {
      guard try update.run(place, name) == 1 else { throw FirstListOutdated() }
    }
    try connection.execute(single: "PRAGMA schema_version=\(version + 1)")
  }
}

/// Filled tables cannot be exchanged, because their tables have changed meanwhile.
struct FirstListOutdated: Error {}
