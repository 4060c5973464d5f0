import FerryPlatform
import FerryProtocol
import FerrySQLite

/// Joining and leaving spaces.
extension FileSpaces {
  /// Makes a ledger for a space, unless the file has one. Returns the space's number.
  ///
  /// - Throws: ``ReplicaError/cannotJoin(space:_:)`` if it is the first space, or if there are too
  ///   many.
  func join(_ address: ServerAddress) throws -> Int {
    guard let first else { throw ReplicaError.closed }
    let space = address.space
    return try first.connection.transaction {
      try beginChanges()
      if let known = try list().first(where: { $0.space == space.value }) { return known.number }
      guard try first.identity().server?.space != space else {
        throw ReplicaError.cannotJoin(space: space.value, "it is this file's first space")
      }
      guard all.count < Self.spacesMax else {
        throw ReplicaError.cannotJoin(
          space: space.value,
          "a file has at most \(Self.spacesMax) spaces; leave another one, or use another file")
      }
      return try create(address, first)
    }
  }

  private func create(_ address: ServerAddress, _ first: ReplicaFile) throws -> Int {
    let connection = first.connection
    try connection.run("UPDATE ferry_space_number SET newest = newest + 1")
    let newest = try connection.first("SELECT newest FROM ferry_space_number") { $0.int64(0) }
    guard let number = newest.map(Int.init) else {
      throw ReplicaError.cannotOpen(path: first.path, "its numbers of spaces are missing")
    }
    let ledger = SQLiteConnection(sharing: connection, namespace: Self.names(of: number))
    try ReplicaSchema.create(on: ledger, device: newDevice(first.wallClock, first.random))
    // A process killed before it stores the token leaves a space with a server.
    try ledger.run(
      "UPDATE ferry_replica SET server = ?, space = ?, authorities = ?", address.url,
      address.space.value, address.certificateAuthorities)
    try connection.run(
      "INSERT INTO ferry_spaces(number, space) VALUES (?, ?)", number, address.space.value)
    try refreshTriggersOfNewSchema()
    try file(number).deviceNames.set(first.deviceNames.own().name)
    return number
  }

  /// Tracks tables with rows of several spaces in all spaces.
  func share(
    _ tables: [Name], by column: Name, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) throws {
    for file in all {
      try file.tracking.track(tables, direction: direction, identity: identity, sharedBy: column)
    }
  }

  /// Tracks the tables with rows of several spaces in a space just joined.
  func shareTables(with number: Int) throws {
    guard let first else { return }
    let joined = try file(number)
    for name in try first.tables.tracked.names() {
      let table = try first.tables.schema(of: name)
      guard let share = table.share, try joined.tables.trackedTable(local: table.local) == nil
      else {
        continue
      }
      try joined.tracking.track(
        [table.local], direction: first.tables.tracked.direction(of: name) ?? .twoWay,
        identity: table.identity, sharedBy: share.column)
    }
  }

  /// Removes a space: the rows, the ledger and the token.
  ///
  /// - Parameter discarding: true to discard operations missing on the server, too.
  /// - Throws: ``ReplicaError/unsent(space:_:)`` if there are such operations.
  func leave(_ number: Int, discarding: Bool) throws {
    let (file, first) = try leaving(number)
    let place = file.place
    // Rows of copies may refer to others, so that their tables could not be dropped with the ledger.
    try file.firstList.end()
    try first.connection.transaction {
      try beginChanges()
      try check(file, number, discarding: discarding)
      try file.removeRows()
      try file.dropLedger()
      try first.connection.run("DELETE FROM ferry_spaces WHERE number = ?", number)
      try refreshTriggersOfNewSchema()
    }
    try first.credentials.store(nil, of: place)
  }

  /// Throws the error of ``leave(_:discarding:)``, and changes nothing.
  func checkLeaving(_ number: Int, discarding: Bool) throws {
    let (file, first) = try leaving(number)
    try first.connection.transaction(.deferred) {
      try check(file, number, discarding: discarding)
    }
  }

  private func leaving(_ number: Int) throws -> (file: ReplicaFile, first: ReplicaFile) {
    let file = try file(number)
    guard let first, file !== first else {
      throw ReplicaError.cannotLeave(
        "the first space of a file cannot be left; delete the file, or use another one")
    }
    return (file, first)
  }

  private func check(_ file: ReplicaFile, _ number: Int, discarding: Bool) throws {
    let unsent = try file.unsentCount()
    guard unsent == 0 || discarding else {
      let space = try list().first { $0.number == number }?.space ?? ""
      throw ReplicaError.unsent(space: space, unsent)
    }
    try checkNoForeignKeys(to: file)
  }
}

/// Foreign keys between spaces, possibly added by a user after the tables were tracked.
extension FileSpaces {
  /// Fails a statement if a foreign key connects tables of two spaces after it.
  func checkForeignKeys() throws {
    if joined.isEmpty { return }
    for file in all { try checkNoForeignKeys(to: file) }
  }

  /// Throws if a table of another space refers to one of this space. The referring rows would go
  /// with those of this space.
  private func checkNoForeignKeys(to file: ReplicaFile) throws {
    let parents = Set(try file.wholeTables().map(\.folded))
    for other in all where other !== file {
      for child in try other.wholeTables() {
        guard
          let parent = try other.tables.foreignKeys.parentNames(of: child).first(where: {
            parents.contains($0.folded)
          })
        else { continue }
        throw ReplicaError.cannotTrack(
          table: child,
          "a foreign key would connect it with \(parent), which belongs to \(try file.spaceTitle()); the "
            + "rows of two spaces arrive independently")
      }
    }
  }
}

extension ReplicaFile {
  /// Returns the tables with all rows in this space, by their names in this file.
  fileprivate func wholeTables() throws -> [Name] {
    let shares = try tables.spaceNames().shares
    return try tables.tracked.names().filter { shares[$0] == nil }.map {
      try tables.spaceNames().local(of: $0, on: connection)
    }
  }

  /// Returns the number of operations missing on the server: those in the queue, in quarantine, and
  /// failed uploads.
  func unsentCount() throws -> Int {
    try connection.first("SELECT count(*) FROM ferry_operations WHERE state IN (2, 3)") {
      Int($0.int64(0))
    }.map { try $0 + queue.count() } ?? 0
  }

  /// Deletes the rows of all tracked tables unrecorded, and stops recording them.
  fileprivate func removeRows() throws {
    let tracked = try tables.tracked.names()
    for table in tracked { try triggers.drop(of: table) }
    // Triggers of the user repeat nothing for other spaces: their devices keep all rows.
    try capture.during(.applying) {
      capture.beginApplying(RecordKey(table: "", record: ""), .values)
      // Rows may refer to each other.
      try connection.deferForeignKeys()
      for table in tracked {
        let names = try tables.spaceNames()
        let local = try names.local(of: table, on: connection)
        guard try connection.hasTable(local) else { continue }
        let rows = names.shares[table].map { " WHERE \($0.isOwn())" } ?? ""
        try connection.foreignKeyStatement("DELETE FROM \(quoted(local))" + rows).run()
      }
    }
  }

  /// Drops the tables of a joined space's ledger.
  fileprivate func dropLedger() throws {
    let prefix = connection.namespace.ownPrefix
    let own = try connection.rows(
      "SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'table') AND substr(name, 1, ?) = ?",
      prefix.utf8.count, prefix
    ) { (type: $0.text(0), name: $0.name(1)) }
    for item in own.sorted(by: { $0.type > $1.type }) {
      try connection.execute(single: "DROP \(item.type.uppercasedASCII) main.\(quoted(item.name))")
    }
  }
}
