import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The recording triggers of one space's tracked tables: their SQL in the schema, and the marks of
/// it in `ferry_tables`.
struct TableTriggers {
  let tables: LocalTables
  /// The tables of all spaces of the file.
  let ofAllSpaces: () -> [LocalTables]
  private var connection: SQLiteConnection { tables.connection }

  // MARK: Signatures

  /// Returns the stored signature of a table; `nil` if it is not tracked.
  func signature(of name: Name) throws -> String? {
    try connection.first("SELECT signature FROM ferry_tables WHERE name = ?", name) { $0.text(0) }
  }

  /// Returns true if the stored signature is the present one.
  func fitSignature(of table: TableSchema) throws -> Bool {
    try signature(of: table.name) == table.signature(tables.rules(for: table))
  }

  /// Stores the facts used by a table's triggers: key, columns, and the tables of referenced
  /// numbers.
  ///
  /// - Parameter isWaiting: true if the next transaction installs the triggers again.
  func storeSignature(of table: TableSchema, isWaiting: Bool = false) throws {
    let signature = table.signature(try tables.rules(for: table))
    var numbers = JSONWriter()
    numbers.object(of: table.numbers) { json, parent in json.string(parent) }
    try connection.run(
      "UPDATE ferry_tables SET signature = ?, local = ?, numbers = ? WHERE name = ?",
      isWaiting ? "step " + signature : signature, table.local, SQLiteText(numbers.finish()),
      table.name)
  }

  // MARK: Installing

  /// Installs the triggers of tables.
  func install(for changed: [TableSchema]) throws {
    if changed.isEmpty { return }
    let isGuarded = try UserTriggers(connection: connection).needGuards()
    for table in changed { try install(for: table, isGuarded: isGuarded) }
  }

  private func install(for table: TableSchema, isGuarded: Bool) throws {
    // Plans of other tables know this one's foreign keys.
    tables.forgetPlans()
    try drop(of: table.name)
    let rules = try tables.rules(for: table)
    for statement in CaptureTriggers.statements(
      for: table, rules, in: connection.namespace, isGuarded: isGuarded)
    {
      try connection.execute(single: statement)
    }
    try storeMark(of: table)
  }

  /// Drops the recording triggers of a table, also if the table has another name now.
  func drop(of table: Name) throws {
    for trigger in names(of: table, isGuarded: true, isShared: true) {
      try connection.execute(single: "DROP TRIGGER IF EXISTS main.\(quoted(trigger))")
    }
  }

  private func names(of table: Name, isGuarded: Bool, isShared: Bool = false) -> [Name] {
    CaptureTriggers.names(
      for: table, in: connection.namespace, isGuarded: isGuarded, isShared: isShared)
  }

  /// The insert trigger ?2 of this file's table ?1, with the places of both in the schema: a
  /// recreated table has another one, also if a program has restored the triggers. VACUUM may move
  /// them.
  private static let created = """
    SELECT s.sql || ' ' || s.rowid || ' ' || m.rowid || ' ' || m.rootpage
    FROM sqlite_schema AS s, sqlite_schema AS m
    WHERE s.name = ?2 AND s.type = 'trigger' AND m.name = ?1 AND m.type = 'table'
    """

  /// Stores the places of a table and the triggers in the schema.
  func storeMark(of table: TableSchema) throws {
    try connection.run(
      "UPDATE ferry_tables SET trigger = (\(Self.created)) WHERE name = ?3", table.local,
      names(of: table.name, isGuarded: false)[0], table.name)
  }

  // MARK: Checks

  /// Returns true if the table has the recording triggers, unchanged.
  func areAsCreated(for table: TableSchema) throws -> Bool {
    let present = try triggers(of: table).map(\.name)
    let own = names(of: table.name, isGuarded: false)
    guard own.allSatisfy(present.contains) else { return false }
    return try connection.first(
      "SELECT t.trigger IS (\(Self.created)) FROM ferry_tables AS t WHERE t.name = ?3",
      table.local, own[0], table.name
    ) { $0.int64(0) == 1 } ?? false
  }

  /// Returns true if the table's triggers exist and are newer than the user's own. A table dropped
  /// and created again has lost them. SQLite fires the newest first, so a row is recorded before
  /// the effects of the user's triggers.
  func areInstalled(for table: TableSchema, isGuarded: Bool) throws -> Bool {
    let own = ofAllSpaces().flatMap { space in
      CaptureTriggers.names(
        for: (try? space.trackedTable(local: table.local)) ?? table.name,
        in: space.connection.namespace, isGuarded: true, isShared: true)
    }
    let triggers = try triggers(of: table)
    let present = triggers.map(\.name)
    let wanted = names(of: table.name, isGuarded: isGuarded, isShared: table.share != nil)
    guard wanted.allSatisfy(present.contains) else { return false }
    let oldestOwn = triggers.filter { own.contains($0.name) }.map(\.place).min() ?? .min
    let newestOther = triggers.filter { !own.contains($0.name) }.map(\.place).max() ?? .min
    return oldestOwn > newestOther
  }

  private func triggers(of table: TableSchema) throws -> [(name: Name, place: Int64)] {
    try connection.rows(
      """
      SELECT name, rowid FROM sqlite_schema
      WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE
      """, table.local
    ) { ($0.name(0), $0.int64(1)) }
  }

  /// Returns true if the triggers record all tracked tables in the present schema.
  func fitAllTables() throws -> Bool {
    let names = try tables.tracked.names()
    let isGuarded = try !names.isEmpty && UserTriggers(connection: connection).needGuards()
    return try names.allSatisfy { name in
      guard let table = tables.present(name) else { return false }
      return try fitSignature(of: table) && areAsCreated(for: table)
        && areInstalled(for: table, isGuarded: isGuarded)
    }
  }
}

extension TableSchema {
  /// The mapped tables of the numbers in the table's columns, by the columns' names here.
  fileprivate var numbers: [Name: Name] {
    let keys = keys.compactMap { key in key.numbers.map { (key.local.folded, $0) } }
    let others = columns.compactMap { column in column.numbers.map { (column.local.folded, $0) } }
    return Dictionary(keys + others, uniquingKeysWith: { one, _ in one })
  }

  /// Returns a text that changes when the triggers must be created again: the key and the columns
  /// as SQL, with their names in the space.
  func signature(_ rules: TableRules) -> String {
    "\(CaptureTriggers.version):"
      + ([identity.rawValue]
      + keys.map { quoted($0.local) + ($0.numbers.map { " OF " + quoted($0) } ?? "") }
      + columns.map { column in
        let local = column.local == column.name ? "" : quoted(column.local) + " AS "
        let numbers = column.numbers.map { " OF " + quoted($0) } ?? ""
        return column.capture(rules).mark + local + quoted(column.name) + numbers
      } + (share.map { [$0.isOwn()] } ?? []))
      .joined(separator: ",")
  }
}
