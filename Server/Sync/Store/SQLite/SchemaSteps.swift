import FerryProtocol
import FerrySQLite

/// Puts a schema in force in a space of a file, step by step.
struct SchemaSteps {
  let file: SQLiteStoreFile
  let space: Int64

  /// Runs the next step of a schema: begins, checks a slice of the records, or ends. Returns the
  /// schema in force in the end. No transaction is larger than a slice.
  func step(_ work: inout SchemaWork) throws -> Result<SpaceSchema, Problem>? {
    file.writing.beginSlices()
    defer { file.writing.endSlices() }
    do {
      guard var check = work.check else { return try begin(&work) }
      if check.tables.isEmpty { return try finish(work, check) }
      work.check = nil
      try advance(&check)
      work.check = check
    } catch is StagedRows.Lost {
      // Another process has changed the space.
      try work.restart()
    } catch is SpaceUnsettled {
      // Another process has written a large packet to it.
      try work.restart()
    } catch {
      // If this fails, the next packet of the space does it.
      try? file.removeStagedRows(space)
      throw error
    }
    return nil
  }

  // MARK: Steps

  private func begin(_ work: inout SchemaWork) throws -> Result<SpaceSchema, Problem>? {
    try file.removeStagedRows(space)
    let (before, record) = try file.connection.transaction(.deferred) {
      (try file.spaceState(space), try file.record(SchemaChange.key, in: space))
    }
    let current = try SpaceSchema(stored: record) ?? .empty
    let decision = SchemaChange.decide(
      work.document, current: current, record: record, in: before,
      dropsRules: work.consent.dropsRules, now: work.now, random: work.random)
    guard case .success(let change) = decision, !change.effects.isEmpty else {
      return decision.map(\.schema)
    }
    let audit = SchemaAudit(
      from: current, to: change.schema, keepsRecords: work.consent.keepsRecords)
    work.check = SchemaWork.Check(
      before: before, current: current, change: change, audit: audit,
      tables: audit.tables.reversed())
    return nil
  }

  /// Checks a slice of the records, and writes their claims.
  private func advance(_ check: inout SchemaWork.Check) throws {
    let claims = try file.connection.transaction(.deferred) {
      try requireBasis(of: check)
      return try look(&check)
    }
    if claims.isEmpty { return }
    try file.exclusively {
      try file.connection.transaction {
        try requireBasis(of: check)
        if !check.hasClaims { try saveStaging(.written) }
        try file.saveClaims(claims, in: space)
      }
    }
    check.hasClaims = true
    try file.checkpoint()
  }

  private func finish(
    _ work: SchemaWork, _ check: SchemaWork.Check
  ) throws -> Result<SpaceSchema, Problem> {
    let (schema, problem) = (check.change.schema, check.audit.problem)
    if problem == nil && !work.onlyChecks {
      try file.exclusively {
        try file.synced { try file.change(space) { try enforce(work, check) } }
      }
    }
    // Removes the claims of a schema not in force, or those of the former one.
    try file.removeStagedRows(space)
    return problem.map { .failure($0) } ?? .success(schema)
  }

  /// Puts the schema in force.
  private func enforce(
    _ work: SchemaWork, _ check: SchemaWork.Check
  ) throws {
    try requireBasis(of: check)
    let (schema, effects) = (check.change.schema, check.change.effects)
    try file.save(effects, in: space, now: work.now)
    try file.run(SchemaQueries.version, SchemaQueries.values(effects.space, in: space))
    try file.append(work.mark, .schemaApplied, of: space, "version \(schema.version)")
    let gone = SchemaChange.keysAdded(from: schema, to: check.current)
    try saveStaging(gone.isEmpty ? nil : .removed)
  }

  /// Throws if the space has changed since the check of the records began.
  private func requireBasis(of check: SchemaWork.Check) throws {
    let (before, now) = (check.before, try file.spaceState(space, staging: check.staging))
    let isSame =
      before.epoch == now.epoch && before.head == now.head
      && before.historyHash == now.historyHash && before.schemaVersion == now.schemaVersion
    guard isSame else { throw StagedRows.Lost() }
  }

  private func saveStaging(_ state: StagingState?) throws {
    try file.connection.run("UPDATE spaces SET staging = ? WHERE id = ?", state?.rawValue, space)
  }

  // MARK: Existing records

  /// Checks records in the order of their tables, as many as a slice has. Returns the new keys
  /// claimed by them.
  private func look(
    _ check: inout SchemaWork.Check
  ) throws -> [IngestEffects.ClaimRow] {
    var claims: [IngestEffects.ClaimRow] = []
    var (rows, bytes) = (file.slice.rows, file.slice.bytes)
    while let table = check.tables.last, rows > 0, bytes > 0 {
      // Each record may claim each key, which reads all of its columns.
      let keys = table.keys.count
      let part = try file.check(
        table, after: check.last, rows: max(1, rows / max(1, keys)),
        bytes: max(1, bytes / (1 + keys)), in: space, &check.audit)
      claims += part.claims
      // A table without records costs a look-up, too.
      rows -= max(1, part.rows * max(1, keys))
      bytes -= part.bytes * (1 + keys)
      check.last = part.last ?? ""
      if part.last == nil { check.tables.removeLast() }
    }
    return claims.sorted { $0.claim < $1.claim }
  }
}
