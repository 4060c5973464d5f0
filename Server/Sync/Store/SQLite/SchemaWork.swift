import FerryProtocol
import FerrySQLite

/// A schema on the way into a space of the embedded store, whose spaces share one writer.
///
/// The existing records are checked in slices, each in a separate snapshot. The new keys claimed by
/// them are written in slices, too: nobody reads keys that the schema in force does not declare. A
/// last short transaction puts the schema in force if the space is as it was.
struct SchemaWork: Sendable {
  let document: SpaceSchema
  let now: Int64
  let consent: SchemaConsent
  /// True if nothing is changed in the end.
  let onlyChecks: Bool
  /// For the identifier of the operation that reports the schema.
  let random: UInt64
  let mark: AuditMark?
  private(set) var attempts = 0
  fileprivate var check: Check?

  init(
    _ document: SpaceSchema, now: Int64, consent: SchemaConsent = SchemaConsent(),
    onlyChecks: Bool = false, random: UInt64, by mark: AuditMark? = nil
  ) {
    (self.document, self.now, self.random, self.mark) = (document, now, random, mark)
    (self.consent, self.onlyChecks) = (consent, onlyChecks)
  }

  /// Attempts before the space counts as busy: other processes change it.
  private static let attemptsMax = 4

  /// Begins from the start.
  fileprivate mutating func restart() throws {
    check = nil
    attempts += 1
    if attempts < Self.attemptsMax { return }
    throw StoreError.busy("the space changes faster than the server can check its records")
  }

  /// A check of existing records.
  fileprivate struct Check {
    /// The space before the schema.
    let before: SpaceState
    let current: SpaceSchema
    let change: SchemaChange.Decision
    var audit: SchemaAudit
    /// The remaining tables, the next one last.
    var tables: [SchemaAudit.Table]
    /// The last checked record of this table.
    var last: Name = ""
    /// True if some claims are written.
    var hasClaims = false

    /// The state of the space's unread rows.
    var staging: StagingState? { hasClaims ? .written : nil }
  }
}

extension SQLiteStoreFile {
  /// Puts a schema in force, durably.
  ///
  /// - Parameter random: For the identifier of the reporting operation.
  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64,
    consent: SchemaConsent = SchemaConsent(), random: UInt64
  ) throws -> Result<SpaceSchema, Problem> {
    var work = SchemaWork(document, now: now, consent: consent, random: random)
    while true {
      if let answer = try step(&work, in: space) { return answer }
    }
  }

  /// Runs the next step of a schema: begins, checks a slice of the records, or ends. Returns the
  /// schema in force in the end. No transaction is larger than a slice.
  func step(
    _ work: inout SchemaWork, in space: Int64
  ) throws -> Result<SpaceSchema, Problem>? {
    writing.beginSlices()
    defer { writing.endSlices() }
    do {
      guard var check = work.check else { return try begin(&work, in: space) }
      if check.tables.isEmpty { return try finish(work, check, in: space) }
      work.check = nil
      try advance(&check, in: space)
      work.check = check
    } catch is StagedRows.Lost {
      // Another process has changed the space.
      try work.restart()
    } catch is SpaceUnsettled {
      // Another process has written a large packet to it.
      try work.restart()
    } catch {
      // If this fails, the next packet of the space does it.
      try? removeStagedRows(space)
      throw error
    }
    return nil
  }

  // MARK: Steps

  private func begin(
    _ work: inout SchemaWork, in space: Int64
  ) throws -> Result<SpaceSchema, Problem>? {
    try removeStagedRows(space)
    let (before, record) = try connection.transaction(.deferred) {
      (try spaceState(space), try self.record(SchemaChange.key, in: space))
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
  private func advance(_ check: inout SchemaWork.Check, in space: Int64) throws {
    let claims = try connection.transaction(.deferred) {
      try requireBasis(of: check, in: space)
      return try look(&check, in: space)
    }
    if claims.isEmpty { return }
    try exclusively {
      try connection.transaction {
        try requireBasis(of: check, in: space)
        if !check.hasClaims { try saveStaging(.written, of: space) }
        try saveClaims(claims, in: space)
      }
    }
    check.hasClaims = true
    try checkpoint()
  }

  private func finish(
    _ work: SchemaWork, _ check: SchemaWork.Check, in space: Int64
  ) throws -> Result<SpaceSchema, Problem> {
    let (schema, problem) = (check.change.schema, check.audit.problem)
    if problem == nil && !work.onlyChecks {
      try exclusively {
        try synced { try change(space) { try enforce(work, check, in: space) } }
      }
    }
    // Removes the claims of a schema not in force, or those of the former one.
    try removeStagedRows(space)
    return problem.map { .failure($0) } ?? .success(schema)
  }

  /// Puts the schema in force.
  private func enforce(
    _ work: SchemaWork, _ check: SchemaWork.Check, in space: Int64
  ) throws {
    try requireBasis(of: check, in: space)
    let (schema, effects) = (check.change.schema, check.change.effects)
    try save(effects, in: space, now: work.now)
    try run(SchemaQueries.version, SchemaQueries.values(effects.space, in: space))
    try append(work.mark, .schemaApplied, of: space, "version \(schema.version)")
    let gone = SchemaChange.keysAdded(from: schema, to: check.current)
    try saveStaging(gone.isEmpty ? nil : .removed, of: space)
  }

  /// Throws if the space has changed since the check of the records began.
  private func requireBasis(of check: SchemaWork.Check, in space: Int64) throws {
    let (before, now) = (check.before, try spaceState(space, staging: check.staging))
    let isSame =
      before.epoch == now.epoch && before.head == now.head
      && before.historyHash == now.historyHash && before.schemaVersion == now.schemaVersion
    guard isSame else { throw StagedRows.Lost() }
  }

  private func saveStaging(_ state: StagingState?, of space: Int64) throws {
    try connection.run("UPDATE spaces SET staging = ? WHERE id = ?", state?.rawValue, space)
  }

  // MARK: Existing records

  /// Checks records in the order of their tables, as many as a slice has. Returns the new keys
  /// claimed by them.
  private func look(
    _ check: inout SchemaWork.Check, in space: Int64
  ) throws -> [IngestEffects.ClaimRow] {
    var claims: [IngestEffects.ClaimRow] = []
    var (rows, bytes) = (slice.rows, slice.bytes)
    while let table = check.tables.last, rows > 0, bytes > 0 {
      // Each record may claim each key, which reads all of its columns.
      let keys = table.keys.count
      let part = try self.check(
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

  /// Removes the claims of keys not declared by the schema in force, in slices. Nobody has written
  /// others while the space's rows are being removed.
  func removeUndeclaredClaims(of space: Int64) throws {
    let (version, keys) = try connection.transaction(.deferred) {
      (try spaceVersion(space), try undeclaredKeys(of: space))
    }
    for key in keys {
      var count = 0
      repeat {
        count = try exclusively {
          try connection.run(
            """
            DELETE FROM unique_keys WHERE space = ?1 AND tbl = ?2 AND key_columns = ?3
              AND value IN (SELECT value FROM unique_keys
                WHERE space = ?1 AND tbl = ?2 AND key_columns = ?3 LIMIT ?4)
              AND EXISTS (SELECT 1 FROM spaces
                WHERE id = ?1 AND staging = ?5 AND schema_version = ?6)
            """, space, key.table, SQLiteText(key.columns), slice.rows,
            StagingState.removed.rawValue, version)
        }
      } while count > 0
    }
  }

  private func spaceVersion(_ space: Int64) throws -> Int64 {
    try connection.first("SELECT schema_version FROM spaces WHERE id = ?", space) { $0.int64(0) }
      ?? 0
  }

  /// Returns the keys with claims that the schema in force does not declare. One look-up for each
  /// key, whatever the number of records.
  private func undeclaredKeys(of space: Int64) throws -> [(table: Name, columns: [UInt8])] {
    let declared = try schema(of: space).tables.mapValues { rules in
      Set(rules.unique.map { UniqueClaim.stored(columns: $0) })
    }
    let next = try connection.statement(
      """
      SELECT tbl, key_columns FROM unique_keys WHERE space = ? AND (tbl, key_columns) > (?, ?)
      ORDER BY tbl, key_columns LIMIT 1
      """)
    var undeclared: [(table: Name, columns: [UInt8])] = []
    var place: (table: Name, columns: [UInt8])? = ("", [])
    while let last = place {
      place = try next.first(space, last.table, SQLiteText(last.columns)) {
        ($0.name(0), Array($0.textBytes(1)))
      }
      guard let key = place, declared[key.table]?.contains(key.columns) != true else { continue }
      undeclared.append(key)
    }
    return undeclared
  }

  func saveClaims(_ rows: [IngestEffects.ClaimRow], in space: Int64) throws {
    try perform(IngestEffects.writes(rows, in: space))
  }
}

/// Binds the table, the columns and their values.
extension UniqueClaim: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(table)
    parameters.append(SQLiteText(columns))
    parameters.append(SQLiteText(value))
  }
}
