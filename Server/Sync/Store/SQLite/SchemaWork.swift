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
  var check: Check?

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
  mutating func restart() throws {
    check = nil
    attempts += 1
    if attempts < Self.attemptsMax { return }
    throw StoreError.busy("the space changes faster than the server can check its records")
  }

  /// A check of existing records.
  struct Check {
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
    let steps = SchemaSteps(file: self, space: space)
    var work = SchemaWork(document, now: now, consent: consent, random: random)
    while true {
      if let answer = try steps.step(&work) { return answer }
    }
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
