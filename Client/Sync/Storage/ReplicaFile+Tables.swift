import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension ReplicaFile {
  /// Tracks ordinary tables: records later writes, records existing rows as inserted, and applies
  /// the changes that the server has sent for them.
  ///
  /// With `creatingKey`, an absent table is created from the changes kept for it, and its key
  /// column gets that name.
  package func track(
    _ names: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay
  ) throws {
    for name in names {
      guard let fault = NameRule.fault(in: name, limits: limits) else { continue }
      throw ReplicaError.cannotTrack(table: name, fault)
    }
    try connection.transaction {
      try refreshTriggersOfNewSchema()
      if let key { for name in names { try create(name, key: key) } }
      // This reads all tables before it makes the first trigger: after each change of the schema,
      // SQLite prepares the reading statements again.
      let tables = try names.map { try schema(local: $0) }
      var added: [TableSchema] = []
      for table in tables where !added.contains(table) {
        if try add(table, direction) { added.append(table) }
      }
      if !added.isEmpty {
        let isGuarded = try needsGuards()
        for table in added { try installTriggers(for: table, isGuarded: isGuarded) }
      }
      for table in tables {
        try keepOverwritten(in: table)
        try applyKept(to: table.name)
      }
      try noteChecked()
    }
  }

  /// Marks a table as tracked, and records its rows. Returns whether it was untracked before.
  private func add(_ table: TableSchema, _ direction: TrackDirection) throws -> Bool {
    guard try signature(of: table.name) == nil else {
      try turn(table.name, direction)
      return false
    }
    try connection.run(
      "INSERT INTO ferry_tables(name, local, signature) VALUES (?, ?, ?)", table.name, table.local,
      table.signature(try rules(for: table)))
    forgetNames()
    try noteColumns(of: table)
    try turn(table.name, direction)
    try checkKeys(of: table)
    if let since = try takeUntracked(table.name) {
      try noteUnrecorded(table.name, since: since)
    } else {
      try recordExistingRows(of: table)
    }
    return true
  }

  /// Stops recording a table's changes; its rows and pending operations stay.
  func untrack(_ table: Name) throws {
    try connection.transaction {
      let name = try trackedTable(local: table) ?? table
      try dropTriggers(of: name)
      try stopTracking(name)
    }
  }

  /// Forgets a tracked table that has no triggers any more.
  func stopTracking(_ name: Name) throws {
    try releaseUnsent(of: name)
    try noteUntracked(name)
    try connection.run("DELETE FROM ferry_tables WHERE name = ?", name)
    forgetNames()
  }

  /// Returns the tracked tables by their names in the space.
  func trackedTables() throws -> [Name] {
    try connection.rows("SELECT name FROM ferry_tables ORDER BY name") { $0.name(0) }
  }

  /// Returns the tracked tables by their names in this file.
  func trackedLocals() throws -> [Name] {
    try connection.rows("SELECT local FROM ferry_tables ORDER BY local") { $0.name(0) }
  }

  /// Returns the name in the space of a tracked table; SQL ignores case.
  func trackedTable(local: Name) throws -> Name? {
    try spaceNames().trackedTable(local: local)
  }

  /// Checks the keys of all rows.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the key of a row is not a text.
  func checkKeys(of table: TableSchema) throws {
    let key = quoted(table.key)
    let limit = limits.recordBytes
    let unusable = try connection.prepare(
      """
      SELECT count(*), quote(min(\(key))) FROM \(quoted(table.local))
      WHERE typeof(\(key)) <> 'text' OR length(CAST(\(key) AS BLOB)) NOT BETWEEN 1 AND \(limit)
      """
    ).first { (count: $0.int64(0), example: $0.text(1)) }
    if let unusable, unusable.count > 0 {
      throw ReplicaError.cannotTrack(
        table: table.name,
        "\(unusable.count) of its rows have no text of 1 to \(limit) bytes in their key \(table.key), "
          + "such as the row with " + String(unusable.example.prefix(Self.shownKeyMax)))
    }
  }

  /// Records rows from before the tracking of the table as inserts, by the same functions as new
  /// ones, in groups that fit a packet.
  private func recordExistingRows(of table: TableSchema) throws {
    let key = quoted(table.key)
    try recordAsInserts(of: table) { record in
      try connection.prepare("SELECT \(key) FROM \(quoted(table.local))").forEach { row in
        let key = row.textBytes(0)
        do {
          try record(key)
        } catch let error as SQLiteError where error.concernsRow {
          let shown = String(decoding: key.prefix(Self.shownKeyMax), as: UTF8.self)
          throw ReplicaError.cannotTrack(
            table: table.name, "its row '\(shown)' cannot be recorded: \(error.message)")
        }
      }
    }
  }

  /// The most bytes of a record's identifier in a message: an invalid one may be too long.
  private static let shownKeyMax = 100

  /// Records existing rows as inserts, in groups that fit a packet.
  ///
  /// - Parameter each: calls its argument with each row's key.
  func recordAsInserts(
    of table: TableSchema,
    _ each: (_ record: (UnsafeRawBufferPointer) throws -> Void) throws -> Void
  ) throws {
    let insert = try connection.prepare(CaptureTriggers.recordExisting(table))
    var inGroup = 0
    try each { key in
      try insert.run(SQLiteText(key))
      inGroup += 1
      if inGroup == limits.operationsPerPacket {
        capture.endTransaction()
        inGroup = 0
      }
    }
    capture.endTransaction()
  }
}
