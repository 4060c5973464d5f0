import FerryProtocol

// The tables mirrored in PostgreSQL, and the transactions of programs with writes to them there.
extension Workload {
  /// The definitions of these tables, as an administrator publishes them.
  private static let mirrored: [Name: DeclaredTable] = [
    "notes": table([text("title"), text("body"), integer("stars")]),
    "lists": table([text("name")]),
    "items": table([text("list"), text("label"), integer("done")], child(of: "lists", by: "list")),
    "ledger": table([text("txn"), integer("size"), integer("place")]),
    "tallies": table([integer("votes")]),
    "slots": DeclaredTable(
      key: "id",
      columns: [
        DeclaredColumn("shelf", .text, isRequired: true),
        DeclaredColumn("place", .integer, isRequired: true),
      ], unique: [["shelf", "place"]]),
    "essays": table(
      [text("list")] + ["a", "b", "c", "d", "e", "f"].map(text), child(of: "lists", by: "list")),
    "shelves": table([text("name"), text("maker")]),
    "books": table(
      [text("shelf"), text("title"), text("maker")], child(of: "shelves", by: "shelf")),
    "loans": table(
      [text("book"), text("note"), text("maker")],
      [DeclaredReference(["book"], to: "books", onDelete: .cascade, onUpdate: .cascade)]),
  ]

  /// The space's schema in a world with mirrors: ``declared``, and the definitions of their tables.
  ///
  /// - Parameter hasOrders: whether companies' sequences number some tables.
  package static func declaredForMirrors(hasOrders: Bool) throws -> SpaceSchema {
    var schema = try SpaceSchema(json: declared)
    let tables = hasOrders ? mirrored.merging(declaredOrders) { $1 } : mirrored
    for (name, table) in tables { schema.tables[name, default: .standard].definition = table }
    return schema
  }

  /// The names of these tables, parents before their children.
  package static let mirroredTables = [
    "notes", "lists", "items", "ledger", "tallies", "slots", "essays", "shelves", "books", "loans",
  ]

  /// Returns the statements by which a company made the same tables, without a mirror in mind.
  ///
  /// - Parameters:
  ///   - hasRules: whether the tables refuse and change some rows (``CompanyRules``).
  ///   - hasOrders: whether sequences number some tables.
  package static func companyTables(hasRules: Bool, hasOrders: Bool) -> [String] {
    let tables = mirroredTables.map { name in
      let table = mirrored[Name(name), default: DeclaredTable(key: "id", columns: [])]
      var parts = ["id text PRIMARY KEY"]
      parts += table.columns.map { column in
        "\(column.name) \(column.affinity == .integer ? "bigint" : "text")"
          + (column.isRequired ? " NOT NULL" : "")
      }
      parts += table.unique.map { "UNIQUE (\($0.map(\.text).joined(separator: ", ")))" }
      parts += table.references.map { reference in
        "FOREIGN KEY (\(reference.columns[0])) REFERENCES \(reference.table) ON DELETE CASCADE"
          + (reference.onUpdate == .cascade ? " ON UPDATE CASCADE" : "")
      }
      return "CREATE TABLE \(name)(\(parts.joined(separator: ", ")))"
    }
    return tables + (hasRules ? CompanyRules.statements : []) + (hasOrders ? companyOrders : [])
  }

  private static func text(_ name: Name) -> DeclaredColumn { DeclaredColumn(name, .text) }
  private static func integer(_ name: Name) -> DeclaredColumn { DeclaredColumn(name, .integer) }

  private static func table(
    _ columns: [DeclaredColumn], _ references: [DeclaredReference] = []
  ) -> DeclaredTable {
    DeclaredTable(key: "id", columns: columns, references: references)
  }

  private static func child(of parent: Name, by column: Name) -> [DeclaredReference] {
    [DeclaredReference([column], to: parent, onDelete: .cascade)]
  }

  /// The actions whose statements PostgreSQL understands too.
  private static let programActions: [UserAction] = [
    .addNote, .editNote, .editNote, .deleteNote, .addList, .addItem, .tickItem, .deleteList,
    .editMany,
    .grow, .shelve, .arrange, .tally, .post,
  ]

  /// Returns the statements of a program's transaction in PostgreSQL. It may act as any user does
  /// there.
  ///
  /// - Parameters:
  ///   - hasOrders: whether sequences number some of the tables.
  ///   - query: reads rows of the mirror's tables.
  package static func program(
    for planned: PlannedAction, name: String, hasOrders: Bool,
    query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    var planned = planned
    var random = SeededRandom(planned.seed, "program")
    if hasOrders, planned.action == .order {
      return try order(&random, isProgram: true, query)
    }
    if random.chance(1, in: 4) { return try transfer(name, &random, query) }
    if !programActions.contains(planned.action) {
      planned.action = programActions[random.below(programActions.count)]
    }
    if planned.action == .post {
      let (id, size) = (fresh("t", &random), 2 + random.below(30))
      return [
        """
        INSERT INTO ledger(id, txn, size, place)
        SELECT '\(id)-' || lpad(i::text, 4, '0'), '\(id)', \(size), i FROM generate_series(1, \(size)) i
        """
      ]
    }
    return try statements(for: planned, deviceName: name, level: 0) { sql in
      // A program knows the schema.
      sql.contains("ferry_replica") ? [[.integer(1)]] : try query(sql)
    }
  }

  /// The accounts with transfers by one mirror's programs. No device writes them.
  private static func accounts(_ name: String) -> [String] {
    (0..<3).map { "account-\(name)-\($0)" }
  }

  /// Returns whether a record is an account of one mirror's programs.
  package static func isAccount(_ key: RecordKey, of name: String) -> Bool {
    key.table == counter.table && accounts(name).contains(key.record.text)
  }

  /// Moves an amount from one account to another, with two entries. The same transaction takes a
  /// slot, and a device may have taken the same one meanwhile.
  private static func transfer(
    _ name: String, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let accounts = accounts(name)
    let from = random.below(accounts.count)
    let to = (from + 1 + random.below(accounts.count - 1)) % accounts.count
    let (id, amount) = (fresh("t", &random), 1 + random.below(90))
    var statements = [(accounts[from], -amount), (accounts[to], amount)].map { account, amount in
      """
      INSERT INTO tallies(id, votes) VALUES ('\(account)', \(amount)) \
      ON CONFLICT(id) DO UPDATE SET votes = tallies.votes + excluded.votes
      """
    }
    statements.append(
      """
      INSERT INTO notes(id, title, stars)
      SELECT '\(id)-' || i, 'transfer', \(amount) FROM generate_series(1, 2) i
      """)
    let shelf = Value.text("shared").sqlLiteral
    let last = try query("SELECT max(place) FROM slots WHERE shelf = \(shelf)").first?.first
    var place: Int64 = 0
    if case .integer(let number)? = last { place = number + 1 }
    // Devices move slots by way of the places from 900 on.
    guard place < 900 else { return statements }
    statements.insert(
      addSlot(to: shelf, at: place, &random), at: random.below(statements.count + 1))
    return statements
  }
}
