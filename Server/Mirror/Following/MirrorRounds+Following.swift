import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Changed definitions of a company's tables, in the rounds of a mirror. The order survives a kill
/// between any two steps, also if the table has the former definition again after it:
///
/// 1. The stored shape becomes one that no table has.
/// 2. The space gets the definition, then the settings.
/// 3. The functions in PostgreSQL are made, with the shape.
///
/// Rows are compared afterwards, as recorded with the shape.
extension MirrorRounds {
  /// Returns the newest known schema of the space.
  func presentSchema() async throws -> SpaceSchema {
    configuration.newest(try await replica.pulledSchema())
  }

  /// Returns `true` if a table has another definition, and neither the space nor the mirror has
  /// refused it.
  func hasOtherDefinitions() async throws -> Bool {
    guard configuration.follows else { return false }
    let ledger = ledger
    guard try await pool.run({ try ledger.hasOtherShapes($0) }) else { return false }
    return refusing.withLock { $0 } != (try await presentSchema().version)
  }

  /// Returns `true` if the next look may end a stop: only definitions are the reason, and they have
  /// changed again. A failure is a reason to look again.
  func mayFollow(_ stopped: MirrorStopped) async -> Bool {
    guard configuration.follows, !isUnfit.withLock({ $0 }),
      stopped.stops.allSatisfy(\.isAboutDefinition)
    else { return false }
    let ledger = ledger
    let tables = try? await pool.run { connection in
      try ledger.isAdopting(connection)
        ? [] : Set(ledger.otherShapes(connection).map(\.table.text))
    }
    return tables.map { tables in stopped.stops.allSatisfy { tables.contains($0.table) } } ?? true
  }

  /// Follows changed definitions as far as devices can go on. Returns the followed tables: the
  /// mirror's functions are to be made again. Others are recorded as stopped.
  func adapt() async throws -> [FollowedTable] {
    guard configuration.follows else { return [] }
    isUnfit.withLock { $0 = false }
    let (ledger, configuration) = (ledger, configuration)
    let shapes = try await pool.run { connection in
      try ledger.isAdopting(connection) ? [] : try ledger.otherShapes(connection)
    }
    if shapes.isEmpty { return [] }
    let pulled = try await presentSchema()
    let former = try configuration.plan(pulled, here: Set(try await replica.status().tables))
    try await readLogged(former)
    // The replica may not have pulled the last definition.
    let schema = try await replica.schema()
    let survey = try await pool.run { connection in
      try TableAdoption(configuration.asked(with: shapes)).survey(connection).plan
    }
    let held = try await columnsHere(shapes.map(\.table), withRenamed: false)
    var changes: [(MirrorLedger.OtherShape, TableChange)] = []
    for shape in shapes {
      guard
        let change = TableChange(
          shape, former, survey, schema, configuration.renamed, held: held)
      else { continue }
      changes.append((shape, change))
    }
    if try await refuses(changes, shapes, pulled.version) { return [] }
    let tables = changes.compactMap { change -> FollowedTable? in
      if case .followed(let table) = change.1 { table } else { nil }
    }
    let begun = tables.map(\.name)
    try await pool.run { try ledger.beginFollowing(begun, $0) }
    let (followed, published) = try await publish(tables, to: schema)
    let settings = configuration.following(followed, published: published)
    try sides.save(settings)
    self.followed.withLock { $0 = settings }
    for table in followed where !table.shown.isEmpty {
      sides.log("followed", "table \(table.name): \(table.shown)")
    }
    for shape in shapes where shape.former == shape.present {
      sides.log("compare", "table \(shape.table) has had another definition for a while")
    }
    let present = try settings.plan(published, here: Set(try await replica.status().tables))
    try await readLogged(present)
    return followed
  }

  /// Returns `true` if the mirror cannot follow the changes, and stores the reasons.
  private func refuses(
    _ changes: [(MirrorLedger.OtherShape, TableChange)], _ shapes: [MirrorLedger.OtherShape],
    _ version: Int64
  ) async throws -> Bool {
    let ledger = ledger
    var stops: [MirrorStop] = []
    for case (let shape, .stopped(let reason)) in changes {
      stops.append(
        MirrorStop(table: shape.table.text, reason: reason, isAboutDefinition: true))
    }
    guard !stops.isEmpty || changes.contains(where: { $0.1 == .lost }) else { return false }
    // The tables may have changed while they were read: the next look decides.
    let present = try await pool.run { try ledger.otherShapes($0).map(\.text) }
    if present != shapes.map(\.text) { return true }
    isUnfit.withLock { $0 = true }
    if stops.isEmpty {
      // The reason is found with the other stops.
      refusing.withLock { $0 = version }
      return true
    }
    let found = stops
    try await pool.run { connection in for stop in found { try ledger.store(stop, connection) } }
    return true
  }

  /// Publishes changed definitions. If the space refuses them, new columns do not travel.
  private func publish(
    _ tables: [FollowedTable], to schema: SpaceSchema
  ) async throws -> (followed: [FollowedTable], schema: SpaceSchema) {
    let renamed = configuration.renamed(with: tables)
    var document = schema
    for table in tables {
      document.tables[table.name]?.definition = renamed.published(
        table.definition, of: table.name)
    }
    if document == schema { return (tables, schema) }
    document.version += 1
    do {
      return (tables, try await replica.applySchema(document))
    } catch ReplicaError.refused(let problem)
      where [.forbidden, .malformedMessage, .limitExceeded].contains(problem.code)
    {
      sides.log(
        "definition",
        "the space refuses the new definitions: \(problem.detail); new "
          + "columns do not travel: run `ferryd mirror adopt` with the same options and a token of "
          + "the role admin")
      refusing.withLock { $0 = schema.version }
      let formers = renamed.applied(to: schema).tables
      let followed = tables.map { table in
        guard let former = formers[table.name]?.definition else { return table }
        var left = table.withoutAdditions(former)
        // The next process, or the next schema, tries it again.
        if table.definition != former, !table.added.isEmpty { left.shape = "" }
        return left
      }
      return (followed, schema)
    }
  }

  /// Makes the reader of the log use the tables of a plan for all later transactions.
  private func readLogged(_ plan: MirrorPlan) async throws {
    guard let reader = sides.reader else { return }
    let number = ledger.number
    // All rows are compared with the next slot.
    guard try await pool.run({ try MirrorLog(number, $0)?.isPublished($0) ?? false }) else {
      return
    }
    reader.use(logged(plan, isAdopting: false))
    let wait = reader.beginWait()
    while try await !reader.reaches(wait) { try Task.checkCancellation() }
  }

  /// Returns tables as the reader of the log needs them.
  func logged(_ plan: MirrorPlan, isAdopting: Bool) -> [MirrorSQL] {
    plan.tables.map {
      MirrorSQL(
        table: $0, schema: configuration.schema, mirror: ledger.number, isAdopting: isAdopting,
        capture: .log)
    }
  }

  /// Returns the columns of tables in the mirror's file.
  private func columnsHere(
    _ tables: [Name], withRenamed: Bool = true
  ) async throws -> [Name: Set<Name>] {
    try await replica.read { database in
      var columns: [Name: Set<Name>] = [:]
      for table in tables {
        columns[table] = try MirrorFile.columns(of: table, withRenamed: withRenamed, database)
      }
      return columns
    }
  }

  /// Compares tables with the mirror's file after followed changes, or with the rows of a removed
  /// mirror.
  ///
  /// - Parameter isResuming: whether a stop holds until the comparison: no write can be read.
  func compareFormer(_ file: MirrorFile, isResuming: Bool) async throws {
    let ledger = ledger
    let former = try await pool.run { try ledger.formerTables($0) }
    var merged: [String: Set<[String?]>] = [:]
    if !isResuming, former.values.contains(where: { $0.added != nil }) {
      let changed = try await replica.read { try file.unbrought($0.connection) }
      // The comparison captures again what the file lacks: an amount would count twice.
      try await readWrites(file)
      // The other definition may be the reason why rows are unsent.
      try await pool.run { try ledger.unsent.allowRetry($0) }
      merged = try await replica.read { database in
        var merged = try file.unbrought(database.connection, ofDevices: false)
        for (table, keys) in changed { merged[table]?.subtract(keys) }
        return merged
      }
    }
    try await MirrorComparison(parts: parts(file)).compareFormer(former, merged)
  }

  /// Returns the names of followed tables whose new columns the mirror's file has already, with
  /// values of before.
  func returning(_ tables: [FollowedTable]) async throws -> Set<Name> {
    let added = tables.filter { !$0.added.isEmpty }
    if added.isEmpty { return [] }
    let columns = try await columnsHere(added.map(\.name))
    return Set(
      added.filter { columns[$0.name]?.isDisjoint(with: $0.added) == false }.map(\.name))
  }
}
