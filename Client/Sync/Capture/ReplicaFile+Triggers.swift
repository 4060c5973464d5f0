import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The triggers of the tracked tables, kept in step with the schema.
extension ReplicaFile {
  /// Updates the triggers if the schema has changed since their last check.
  func refreshTriggersOfNewSchema() throws {
    if suspension != nil { return }
    let mark = try schemaMark()
    if mark == checkedSchema { return }
    let checked = try connection.first("SELECT mark FROM ferry_checked WHERE one = 1") {
      $0.text(0)
    }
    guard checked == mark.text else { return try refreshTriggers() }
    plans.removeAll()
    connection.forgetStatements()
    checkedSchema = mark
  }

  /// Updates the triggers outside of a transaction.
  func noticeNewSchema() throws {
    if try schemaMark() == checkedSchema { return }
    try connection.transaction { try spaces.refreshTriggersOfNewSchema() }
  }

  /// Updates the triggers after the user changed a tracked table's columns, and applies the changes
  /// kept for columns that exist now.
  func refreshTriggers() throws {
    plans.removeAll()
    let altered = alteredTables
    alteredTables = []
    let names = try tracked.names()
    let isGuarded = try !names.isEmpty && needsGuards()
    // As in `track`: first read all tables, then change them.
    var changed: [TableSchema] = []
    for name in names {
      // SQLite treats names of another case as the same; the space does not (SPEC.md §23).
      guard let table = try? schema(of: name), table.name == name else {
        guard !altered.contains(name) else {
          throw ReplicaError.cannotTrack(
            table: name,
            "it would be renamed or lose its key. To rename it, use renameTable or `ferry rename`. To create "
              + "it again, "
              + "fill a table of another name, drop \(name), and rename the new one to \(name)")
        }
        try unrecordedWrites.markAbsent(name)
        continue
      }
      let signature = table.signature(try rules(for: table))
      let isKnown = try self.signature(of: name) == signature
      let isOwnChange = altered.contains(name)
      let isAsCreated = try isOwnChange || hasCaptureTriggersAsCreated(table)
      if try isKnown && isAsCreated && hasTriggers(table, isGuarded: isGuarded) { continue }
      changed.append(table)
      if !isAsCreated {
        // The table was dropped and created again, or another program renamed columns: then SQLite
        // has rewritten the triggers, and they record the columns under other names.
        try unrecordedWrites.mark(name)
      } else {
        try unrecordedWrites.markNewColumns(of: table)
      }
      try unrecordedWrites.storeColumns(of: table)
      try storeSignature(of: table)
      forgetNames()
    }
    for table in changed { try installTriggers(for: table, isGuarded: isGuarded) }
    for table in changed { try Reconciler(self).storeOverwritten(in: table) }
    try KeptRetry(self).apply(changed.map { .unknown(in: $0.name) })
    try markChecked()
  }

  /// Stores the facts used by a table's triggers: key, columns, and the tables of referenced
  /// numbers.
  ///
  /// - Parameter isWaiting: true if the next transaction installs the triggers again.
  func storeSignature(of table: TableSchema, isWaiting: Bool = false) throws {
    let signature = table.signature(try rules(for: table))
    var numbers = JSONWriter()
    numbers.object(of: table.numbers) { json, parent in json.string(parent) }
    try connection.run(
      "UPDATE ferry_tables SET signature = ?, local = ?, numbers = ? WHERE name = ?",
      isWaiting ? "step " + signature : signature, table.local, SQLiteText(numbers.finish()),
      table.name)
  }

  /// Records that the triggers fit the present schema.
  func markChecked() throws {
    let mark = try schemaMark()
    if mark == checkedSchema { return }
    connection.forgetStatements()
    try kept.openAll()
    try connection.run("INSERT OR REPLACE INTO ferry_checked VALUES (1, ?)", mark.text)
    checkedSchema = mark
  }

  func schemaMark() throws -> SchemaMark {
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    return SchemaMark(version: version, rollbacks: capture.rollbacks)
  }

  func installTriggers(for table: TableSchema, isGuarded: Bool) throws {
    // Plans of other tables know this one's foreign keys.
    plans.removeAll()
    try dropTriggers(of: table.name)
    let rules = try rules(for: table)
    for statement in CaptureTriggers.statements(
      for: table, rules, in: connection.namespace, isGuarded: isGuarded)
    {
      try connection.execute(single: statement)
    }
    try storeTriggerMark(of: table)
  }

  /// Stores the places of a table and the triggers in the schema.
  func storeTriggerMark(of table: TableSchema) throws {
    try connection.run(
      """
      UPDATE ferry_tables SET trigger = (\(Self.createdTrigger)) WHERE name = ?3
      """, table.local, captureTriggers(of: table.name, isGuarded: false)[0],
      table.name)
  }

  private func captureTriggers(
    of table: Name, isGuarded: Bool, isShared: Bool = false
  ) -> [Name] {
    CaptureTriggers.names(
      for: table, in: connection.namespace, isGuarded: isGuarded, isShared: isShared)
  }

  /// Drops the recording triggers of a table, also if the table has another name now.
  func dropTriggers(of table: Name) throws {
    for trigger in captureTriggers(of: table, isGuarded: true, isShared: true) {
      try connection.execute(single: "DROP TRIGGER IF EXISTS main.\(quoted(trigger))")
    }
  }

  private func triggers(of table: TableSchema) throws -> [(name: Name, place: Int64)] {
    try connection.rows(
      """
      SELECT name, rowid FROM sqlite_schema
      WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE
      """, table.local
    ) { ($0.name(0), $0.int64(1)) }
  }

  /// Returns true if the table has the recording triggers, unchanged.
  func hasCaptureTriggersAsCreated(_ table: TableSchema) throws -> Bool {
    let names = try triggers(of: table).map(\.name)
    let own = captureTriggers(of: table.name, isGuarded: false)
    guard own.allSatisfy(names.contains) else { return false }
    return try connection.first(
      """
      SELECT t.trigger IS (\(Self.createdTrigger)) FROM ferry_tables AS t WHERE t.name = ?3
      """, table.local, own[0], table.name
    ) { $0.int64(0) == 1 } ?? false
  }

  /// The insert trigger ?2 of this file's table ?1, with the places of both in the schema: a
  /// recreated table has another one, also if a program has restored the triggers. VACUUM may move
  /// them.
  private static let createdTrigger = """
    SELECT s.sql || ' ' || s.rowid || ' ' || m.rowid || ' ' || m.rootpage
    FROM sqlite_schema AS s, sqlite_schema AS m
    WHERE s.name = ?2 AND s.type = 'trigger' AND m.name = ?1 AND m.type = 'table'
    """

  /// Returns true if the table's triggers exist and are newer than the user's own. A table dropped
  /// and created again has lost them. SQLite fires the newest first, so a row is recorded before
  /// the effects of the user's triggers.
  func hasTriggers(_ table: TableSchema, isGuarded: Bool) throws -> Bool {
    let own = spaces.all.flatMap { space in
      CaptureTriggers.names(
        for: (try? space.trackedTable(local: table.local)) ?? table.name,
        in: space.connection.namespace, isGuarded: true, isShared: true)
    }
    let triggers = try triggers(of: table)
    let names = triggers.map(\.name)
    let wanted = captureTriggers(
      of: table.name, isGuarded: isGuarded, isShared: table.share != nil)
    guard wanted.allSatisfy(names.contains)
    else { return false }
    let oldestOwn = triggers.filter { own.contains($0.name) }.map(\.place).min() ?? .min
    let newestOther = triggers.filter { !own.contains($0.name) }.map(\.place).max() ?? .min
    return oldestOwn > newestOther
  }

  /// Returns true if a write to one row may write to another one. This is so if the user has
  /// triggers, or if a table's definition contains UPDATE (as foreign keys with ON UPDATE do) or
  /// REPLACE.
  func needsGuards() throws -> Bool {
    func isIn(_ schema: String) throws -> Bool {
      try connection.exists(
        """
        SELECT 1 FROM \(schema) WHERE lower(substr(name, 1, 6)) <> 'ferry_' AND
          (type = 'trigger' OR instr(lower(sql), 'update') OR instr(lower(sql), 'replace')) LIMIT 1
        """)
    }
    if try isIn("sqlite_schema") { return true }
    // Queried only if the schema exists: the query would create it.
    let databases = try connection.rows("PRAGMA database_list") { $0.text(1) }
    return try databases.contains(where: { $0 == "temp" }) && isIn("sqlite_temp_schema")
  }

  func signature(of name: Name) throws -> String? {
    try connection.first("SELECT signature FROM ferry_tables WHERE name = ?", name) { $0.text(0) }
  }
}

/// A state of the schema. The version may occur again after a rollback.
struct SchemaMark: Equatable {
  /// The version, different after each change of the schema (PRAGMA schema_version).
  let version: Int64
  /// The number of rolled back transactions of this connection.
  let rollbacks: Int

  /// The mark as stored in the file; the version of Ferry's triggers is part of it.
  var text: String { "\(CaptureTriggers.version):\(version)" }
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
