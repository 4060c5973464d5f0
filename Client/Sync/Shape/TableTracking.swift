import FerryProtocol
import FerrySQLite

/// The tracking of tables of this file (SPEC.md §26).
struct TableTracking {
  let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }
  private var tables: LocalTables { file.tables }
  private var unrecordedWrites: UnrecordedWrites { file.unrecordedWrites }
  var existingRows: ExistingRows {
    ExistingRows(tables: tables, capture: file.capture, limits: file.limits)
  }

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
  func track(
    _ names: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil, sharedBy column: Name? = nil
  ) throws {
    for name in names {
      guard let fault = NameRule.fault(in: name, limits: file.limits) else { continue }
      throw ReplicaError.cannotTrack(table: name, fault)
    }
    try connection.transaction {
      try file.schemaChanges.refreshIfNew()
      if let key { for name in names { try TableCreation(file: file).create(name, key: key) } }
      let new = Set(try enter(names, identity, sharedBy: column))
      // This reads all tables before it makes the first trigger: after each change of the schema,
      // SQLite prepares the reading statements again.
      let schemas = try names.map { try tables.schema(local: $0) }
      let added = schemas.filter { new.contains($0.name) }
      for table in added {
        try KeyNumbers(connection: connection).assignRows(of: table, fresh: file.capture.newRecord)
      }
      for table in schemas {
        if new.contains(table.name) { try add(table) }
        try file.directions.set(direction, of: table)
      }
      for table in added { try recordRows(ofAdded: table) }
      try file.triggers.install(for: added)
      for table in schemas { try file.reconciler.storeOverwritten(in: table) }
      // Each pull tries changes rejected by the schema.
      try file.keptRetry.apply(schemas.map { .unknown(in: $0.name) })
      try SpellingAdoption(file: file).adopt(forTracked: added)
      try file.schemaChanges.markChecked()
    }
  }

  /// Enters tables among the tracked ones. Returns the new ones, by their names in the space.
  private func enter(
    _ names: [Name], _ identity: KeyIdentity?, sharedBy column: Name?
  ) throws -> [Name] {
    let others = try tables.tracked.names().map { try? tables.schema(of: $0) }
    var new: [Name] = []
    for name in names {
      let table = try tables.schema(local: name)
      guard try file.triggers.signature(of: table.name) == nil else {
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
      try tables.tracked.add(table, chosen, sharedBy: shared)
      tables.forgetNames()
      new.append(table.name)
    }
    for case let table? in others where try tables.schema(of: table.name) != table {
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
    guard try file.identity().server != nil else {
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
    for other in file.spaces.all where other !== file {
      if let known = try other.tables.trackedTable(local: table.local) {
        if let column, try other.tables.schema(of: known).share?.column.folded == column.folded {
          continue
        }
        throw ReplicaError.cannotTrack(
          table: table.local, "it belongs to \(try other.spaceTitle()); untrack it there first")
      }
      let parents = try tables.foreignKeys.parentNames(of: table.local)
      for local in try other.tables.tracked.locals() {
        if try column != nil && other.tables.schema(local: local).share != nil { continue }
        let isParent = parents.contains { $0.folded == local.folded }
        let isChild = try tables.foreignKeys.parentNames(of: local).contains {
          $0.folded == table.local.folded
        }
        guard isParent || isChild else { continue }
        throw ReplicaError.cannotTrack(
          table: table.local,
          "a foreign key connects it with \(local), which belongs to \(try other.spaceTitle()); the "
            + "rows of two spaces arrive independently, so track both tables in one space")
      }
    }
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
    let declared = try former ?? tables.rules(for: table).definition?.key.identity
    guard let declared, table.fault(of: declared) == nil else { return table.proposal.identity }
    return declared
  }

  /// Marks a table as tracked.
  private func add(_ table: TableSchema) throws {
    try file.triggers.storeSignature(of: table)
    try unrecordedWrites.storeColumns(of: table)
    try existingRows.checkKeys(of: table)
    try checkReferences(of: table)
  }

  private func recordRows(ofAdded table: TableSchema) throws {
    if let since = try unrecordedWrites.removeUntracked(table.name) {
      try unrecordedWrites.mark(table.name, since: since)
    } else {
      try existingRows.record(of: table)
    }
  }

  /// Returns the identity for a table of this file if it is tracked.
  func proposal(for local: Name) throws -> KeyProposal {
    try proposal(for: tables.schema(local: local))
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
      let isShared = (try? tables.schema(local: table))?.share != nil
      for file in isShared ? file.spaces.all : [file] {
        let name = try file.tables.trackedTable(local: table) ?? table
        let tracking = file.tracking
        try tracking.checkNumbersUnused(of: name)
        try file.triggers.drop(of: name)
        try tracking.end(name)
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
      guard let numbers, let parent = try? tables.schema(of: numbers) else { continue }
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
  private func checkNumbersUnused(of name: Name) throws {
    let child = try tables.tracked.names().first { other in
      guard other != name, let table = try? tables.schema(of: other) else { return false }
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

  /// Ends the tracking of a table that a step of a migration has dropped.
  func end(droppedByStep name: Name) throws {
    try checkNumbersUnused(of: name)
    try end(name)
    try file.log("untracked", "a step of the migration dropped \(name); it is no longer tracked")
  }

  /// Removes a table without triggers from the tracked ones.
  private func end(_ name: Name) throws {
    try file.uploads.release(of: name)
    try unrecordedWrites.markUntracked(name)
    try tables.tracked.remove(name)
    tables.forgetNames()
  }
}
