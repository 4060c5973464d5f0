import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension ReplicaFile {
  /// Tracks ordinary tables: records later writes, records existing rows as inserted, and applies
  /// the changes received for them.
  ///
  /// With `creatingKey`, an absent table is created from the changes kept for it, and the key
  /// column gets this name.
  ///
  /// - Parameters:
  ///   - identity: how keys become identifiers; `nil` for Ferry's proposal.
  ///   - column: the column of this file with the space of each row; `nil` if all rows belong to
  ///     this space.
  package func track(
    _ names: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil, sharedBy column: Name? = nil
  ) throws {
    for name in names {
      guard let fault = NameRule.fault(in: name, limits: limits) else { continue }
      throw ReplicaError.cannotTrack(table: name, fault)
    }
    try connection.transaction {
      try refreshTriggersOfNewSchema()
      if let key { for name in names { try create(name, key: key) } }
      let new = Set(try enter(names, identity, sharedBy: column))
      // This reads all tables before it makes the first trigger: after each change of the schema,
      // SQLite prepares the reading statements again.
      let tables = try names.map { try schema(local: $0) }
      let added = tables.filter { new.contains($0.name) }
      for table in added {
        try KeyNumbers(connection: connection).assignRows(of: table, fresh: capture.newRecord)
      }
      for table in tables {
        if new.contains(table.name) { try add(table) }
        try turn(table, direction)
      }
      for table in added { try recordRows(ofAdded: table) }
      if !added.isEmpty {
        let isGuarded = try needsGuards()
        for table in added { try installTriggers(for: table, isGuarded: isGuarded) }
      }
      for table in tables { try Reconciler(self).storeOverwritten(in: table) }
      // Each pull tries changes rejected by the schema.
      try KeptRetry(self).apply(tables.map { .unknown(in: $0.name) })
      try adoptSpelling(of: added)
      try markChecked()
    }
  }

  /// Enters tables among the tracked ones. Returns the new ones, by their names in the space.
  private func enter(
    _ names: [Name], _ identity: KeyIdentity?, sharedBy column: Name?
  ) throws -> [Name] {
    let others = try tracked.names().map { try? schema(of: $0) }
    var new: [Name] = []
    for name in names {
      let table = try schema(local: name)
      guard try signature(of: table.name) == nil else {
        try check(identity, of: table, against: table.identity)
        guard column == nil || table.share?.column.folded == column?.folded else {
          throw ReplicaError.cannotTrack(
            table: table.local, "it is tracked as a whole, or by another column; untrack it first")
        }
        continue
      }
      if let fault = table.realKeyFault {
        throw ReplicaError.cannotTrack(table: table.local, fault)
      }
      try checkOtherSpaces(of: table, sharedBy: column)
      let shared = try column.map { try spaceColumn($0, of: table) }
      let former = try unrecordedWrites.formerIdentity(of: table.name)
      if let former { try check(identity, of: table, against: former) }
      let identity = identity ?? former
      if let identity, let fault = table.fault(of: identity) {
        throw ReplicaError.cannotTrack(table: table.local, fault)
      }
      let chosen = try identity ?? declaredIdentity(of: table)
      try tracked.add(table, chosen, sharedBy: shared)
      forgetNames()
      new.append(table.name)
    }
    for case let table? in others where try schema(of: table.name) != table {
      let cause = names.first { name in
        table.references.contains { $0.table.folded == name.folded }
      }
      throw ReplicaError.cannotTrack(
        table: cause ?? names.first ?? table.local,
        "\(table.local) is tracked and refers to it by numbers of this device, which it has sent as "
          + "they are; `\(table.local.command("ferry untrack"))`, and track both together")
    }
    return new
  }

  /// Returns a column as the table spells it.
  private func spaceColumn(_ column: Name, of table: TableSchema) throws -> Name {
    guard try identity().server != nil else {
      throw ReplicaError.cannotTrack(
        table: table.local, "the file's first space has no name yet; set its server first")
    }
    let places = table.keys.map(\.local) + table.columns.map(\.local)
    guard let found = places.first(where: { $0.folded == column.folded }) else {
      throw ReplicaError.cannotTrack(table: table.local, "it has no column \(column)")
    }
    return found
  }

  /// Throws if another space of the file has a table, or one that foreign keys connect to it: the
  /// rows of two spaces arrive independently. Tables with rows of several spaces may refer to each
  /// other.
  private func checkOtherSpaces(of table: TableSchema, sharedBy column: Name?) throws {
    for other in spaces.all where other !== self {
      if let known = try other.trackedTable(local: table.local) {
        if let column, try other.schema(of: known).share?.column.folded == column.folded {
          continue
        }
        throw ReplicaError.cannotTrack(
          table: table.local, "it belongs to \(try other.spaceTitle()); untrack it there first")
      }
      let parents = try parents(of: table.local)
      for local in try other.tracked.locals() {
        if try column != nil && other.schema(local: local).share != nil { continue }
        let isParent = parents.contains { $0.folded == local.folded }
        let isChild = try self.parents(of: local).contains { $0.folded == table.local.folded }
        guard isParent || isChild else { continue }
        throw ReplicaError.cannotTrack(
          table: table.local,
          "a foreign key connects it with \(local), which belongs to \(try other.spaceTitle()); the "
            + "rows of two spaces arrive independently, so track both tables in one space")
      }
    }
  }

  /// Returns the tables of this file that a table's foreign keys refer to.
  func parents(of local: Name) throws -> [Name] {
    try connection.rows("SELECT \"table\" FROM pragma_foreign_key_list(?)", local) { $0.name(0) }
  }

  /// Returns the space's name for messages.
  func spaceTitle() throws -> String {
    try identity().server.map { "space \($0.space)" } ?? "the file's first space"
  }

  /// Throws if a table does not keep the identity of its records on other devices.
  private func check(
    _ identity: KeyIdentity?, of table: TableSchema, against known: KeyIdentity
  ) throws {
    guard let identity, identity != known else { return }
    throw ReplicaError.cannotTrack(
      table: table.local,
      "its identity is \(known.rawValue), and other devices know its records by these identifiers; "
        + "another identity needs a new table")
  }

  /// Returns the identity from the space's definition of a table, if it fits the table's key;
  /// otherwise the proposed one.
  private func declaredIdentity(of table: TableSchema) throws -> KeyIdentity {
    let former = try unrecordedWrites.formerIdentity(of: table.name)
    let declared = try former ?? rules(for: table).definition?.key.identity
    guard let declared, table.fault(of: declared) == nil else { return table.proposal.identity }
    return declared
  }

  /// Marks a table as tracked.
  private func add(_ table: TableSchema) throws {
    try storeSignature(of: table)
    try unrecordedWrites.storeColumns(of: table)
    try checkKeys(of: table)
    try checkReferences(of: table)
  }

  private func recordRows(ofAdded table: TableSchema) throws {
    if let since = try unrecordedWrites.removeUntracked(table.name) {
      try unrecordedWrites.mark(table.name, since: since)
    } else {
      try recordExistingRows(of: table)
    }
  }

  /// Returns the identity for a table of this file if it is tracked.
  func proposal(for local: Name) throws -> KeyProposal {
    try proposal(for: schema(local: local))
  }

  /// Returns the identity for a table if it is tracked.
  func proposal(for table: TableSchema) throws -> KeyProposal {
    let identity = try declaredIdentity(of: table)
    guard identity != table.proposal.identity else { return table.proposal }
    return KeyProposal(
      table: table.local, identity: identity, reason: "the space's schema declares it")
  }

  /// Stops recording a table's changes; rows and pending operations stay.
  func untrack(_ table: Name) throws {
    try connection.transaction {
      let isShared = (try? schema(local: table))?.share != nil
      for file in isShared ? spaces.all : [self] {
        let name = try file.trackedTable(local: table) ?? table
        try file.checkNumbersUnused(of: name)
        try file.dropTriggers(of: name)
        try file.stopTracking(name)
      }
    }
  }

  /// Throws if a number of a mapped table in a table's columns belongs to no row.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if rows refer to none.
  private func checkReferences(of table: TableSchema) throws {
    let columns =
      table.columns.map { (local: $0.local, numbers: $0.numbers) }
      + table.keys.map { (local: $0.local, numbers: $0.numbers) }
    for (local, numbers) in columns {
      guard let numbers, let parent = try? schema(of: numbers) else { continue }
      let column = "t.\(quoted(local))"
      let count =
        try connection.first(
          """
          SELECT count(*) FROM \(quoted(table.local)) AS t WHERE \(column) IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM \(quoted(parent.local)) AS p WHERE p.\(parent.keyList[0]) = \(column))
          """
        ) { $0.int64(0) } ?? 0
      guard count == 0 else {
        throw ReplicaError.cannotTrack(
          table: table.local,
          "\(count.grouped) of its rows refer with \(local) to rows of \(parent.local) that do not exist; "
            + "correct them, or set them to NULL")
      }
    }
  }

  /// Throws if another tracked table refers to the numbers of a mapped table.
  func checkNumbersUnused(of name: Name) throws {
    let child = try tracked.names().first { other in
      guard other != name, let table = try? schema(of: other) else { return false }
      return table.columns.contains { $0.numbers == name }
        || table.keys.contains { $0.numbers == name }
    }
    guard let child else { return }
    throw ReplicaError.cannotTrack(
      table: name,
      "\(child) refers to its numbers, which would travel as they are; "
        + "`\(child.command("ferry untrack"))` first"
    )
  }

  /// Removes a table without triggers from the tracked ones.
  func stopTracking(_ name: Name) throws {
    try uploads.release(of: name)
    try unrecordedWrites.markUntracked(name)
    try tracked.remove(name)
    forgetNames()
  }

  /// Returns the name in the space of a tracked table; SQL ignores case.
  func trackedTable(local: Name) throws -> Name? {
    try spaceNames().trackedTable(local: local)
  }

  /// Checks the keys of all rows.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the key of a row is not a text.
  func checkKeys(of table: TableSchema) throws {
    let record = table.record(of: "t")
    let limit = limits.recordBytes
    let shown = table.keyList.map { "quote(t.\($0))" }.joined(separator: " || ', ' || ")
    let unusable = try connection.prepare(
      """
      SELECT count(*), min(\(shown)) FROM \(table.rows) AS t
      WHERE typeof(\(record)) <> 'text' OR length(CAST(\(record) AS BLOB)) NOT BETWEEN 1 AND \(limit)
      """
    ).first { (count: $0.int64(0), example: $0.text(1)) }
    if let unusable, unusable.count > 0 {
      let wanted =
        switch table.identity {
        case .text: "no text of 1 to \(limit) bytes"
        case .mapped: "no integer"
        case .value: "NULL, a real number or too many bytes"
        }
      throw ReplicaError.cannotTrack(
        table: table.name,
        "\(unusable.count.grouped) of its rows have \(wanted) in their key "
          + table.keys.map(\.local.text).joined(separator: ", ") + ", such as the row with "
          + String(unusable.example.prefix(Self.shownKeyMax)))
    }
  }

  /// Records rows from before the tracking of the table as inserts, by the same functions as new
  /// ones, in groups within the size of a packet.
  private func recordExistingRows(of table: TableSchema) throws {
    try recordAsInserts(of: table) { record in
      let rows = try connection.prepare(
        "SELECT \(table.record(of: "t")) FROM \(table.rows) AS t")
      try rows.forEach { row in
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

  /// Records existing rows as inserts, in groups within the size of a packet.
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
