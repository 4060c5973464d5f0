import FerryPostgres
import FerryProtocol

/// The limits of a mirror's role in a company's table: a device's write beyond them goes back to the
/// device. They follow the rights that the company grants and withdraws.
package struct WriteLimits: Codable, Sendable, Equatable {
  /// A right on a whole table.
  package enum Right: String, Codable, Sendable, CaseIterable {
    case insert = "INSERT"
    case update = "UPDATE"
    case delete = "DELETE"
  }

  /// The missing rights. Without UPDATE on any column, the role cannot lock a row.
  package var missing: [Right] = []
  /// The travelling columns that the role may not change.
  package var readOnly: [String] = []
  /// The travelling columns that the role may not set in a new row, if it may insert rows.
  package var unset: [String] = []

  /// No limits.
  package init() {}

  /// The rights of a role in a table, as the catalog has them.
  struct Found {
    /// Rights missing on the table and on each column.
    var missing: [String]
    /// The columns without UPDATE, in the order of the table.
    var fixed: [String]
    /// The columns without INSERT, in the order of the table.
    var unset: [String]
    /// The columns of the primary key.
    var key: [String]
  }

  init(_ found: Found, of adoption: MirrorAdoption) {
    let travelling = Set(adoption.columns)
    missing = Right.allCases.filter { found.missing.contains($0.rawValue) }
    readOnly = found.fixed.filter(travelling.contains)
    // A new row needs them.
    let needed = found.key + [adoption.space?.name].compactMap(\.self)
    if !missing.contains(.insert), needed.contains(where: found.unset.contains) {
      missing.insert(.insert, at: 0)
    }
    if !missing.contains(.insert) { unset = found.unset.filter(travelling.contains) }
  }

  /// Returns the changes since other limits, for people; empty if there are none.
  func changes(since former: WriteLimits) -> String {
    [("granted", former, self), ("withdrawn", self, former)].compactMap { word, more, fewer in
      let whole = more.missing.filter { !fewer.missing.contains($0) }
      let known = whole + fewer.missing
      let parts = [
        (Right.update, more.readOnly, fewer.readOnly), (.insert, more.unset, fewer.unset),
      ]
      .compactMap { right, columns, others -> String? in
        let changed = columns.filter { !others.contains($0) }
        if changed.isEmpty || known.contains(right) { return nil }
        return "\(right.rawValue) (\(changed.joined(separator: ", ")))"
      }
      let all = whole.map(\.rawValue) + parts
      return all.isEmpty ? nil : "\(all.joined(separator: ", ")) \(word)"
    }.joined(separator: "; ")
  }
}

extension CompanyTable {
  /// The limits of the mirror's role.
  func limits(of adoption: MirrorAdoption) -> WriteLimits {
    let found = WriteLimits.Found(
      missing: missingRights, fixed: columns.filter { !$0.isUpdatable }.map(\.name),
      unset: columns.filter { !$0.isInsertable }.map(\.name), key: key)
    return WriteLimits(found, of: adoption)
  }

  /// Returns the writes of devices that go back to them, with the reasons.
  func left(_ limits: WriteLimits) -> [AdoptionPlan.LeftPart] {
    if view != nil {
      let reason = "the mirror only reads it"
      return [AdoptionPlan.LeftPart(kind: .write, columns: [], of: Name(name), reason)]
    }
    let lacks = "the user of the database lacks"
    let whole = limits.missing.map(\.rawValue).filter(missingRights.contains)
    var parts: [(columns: [String], reason: String)] = []
    if !whole.isEmpty { parts.append(([], "\(lacks) \(whole.joined(separator: ", ")) on it")) }
    if limits.missing.contains(.insert), !whole.contains(WriteLimits.Right.insert.rawValue) {
      parts.append(([], "\(lacks) INSERT on a column that each new row needs"))
    }
    if !limits.missing.contains(.update), !limits.readOnly.isEmpty {
      parts.append((limits.readOnly, "\(lacks) UPDATE on it"))
    }
    if !limits.unset.isEmpty { parts.append((limits.unset, "\(lacks) INSERT on it")) }
    return parts.map {
      AdoptionPlan.LeftPart(kind: .write, columns: $0.columns, of: Name(name), $0.reason)
    }
  }
}

extension MirrorTable {
  /// PostgreSQL's words for a write that the mirror's role may not do.
  var denial: String { "permission denied for table \(name)" }

  /// - Throws: ``MirrorFault`` if the mirror's role may neither insert nor change a row, or delete none.
  func checkRights(isDelete: Bool) throws(MirrorFault) {
    let needed: [WriteLimits.Right] = isDelete ? [.delete] : [.insert, .update]
    if needed.allSatisfy(limits.missing.contains) { throw MirrorFault(description: denial) }
  }
}

extension MirrorConfiguration {
  /// Returns the changed limits of adopted tables, by table. Without UPDATE on any column, the role
  /// cannot lock a row, and the mirror stops.
  func otherLimits(_ connection: PostgresConnection) throws -> [String: WriteLimits] {
    var changed: [String: WriteLimits] = [:]
    let names = PostgresArray(adoptions.keys.sorted().map { Optional($0) })
    for row in try connection.query(Self.rights, [.text(schema), .array(names)]) {
      let name = try row.text(0)
      guard let adoption = adoptions[name], adoption.view == nil else { continue }
      let found = WriteLimits.Found(
        missing: try row.array(1, of: String.self).compactMap(\.self),
        fixed: try row.array(2, of: String.self).compactMap(\.self),
        unset: try row.array(3, of: String.self).compactMap(\.self),
        key: try row.array(4, of: String.self).compactMap(\.self))
      let limits = WriteLimits(found, of: adoption)
      if limits == adoption.limits || limits.missing.contains(.update) {
        continue
      }
      changed[name] = limits
    }
    return changed
  }

  /// The rights of the connection's role in some tables of a schema. It runs in each round, so it looks
  /// at columns only if a right on the table is missing.
  private static let rights = PostgresStatement(
    "mirror_rights",
    """
    SELECT c.relname::text,
      ARRAY(SELECT r FROM unnest('{INSERT,UPDATE,DELETE}'::text[]) r
        WHERE NOT CASE r WHEN 'DELETE' THEN has_table_privilege(c.oid, r)
          ELSE has_any_column_privilege(c.oid, r) END),
      CASE WHEN has_table_privilege(c.oid, 'UPDATE') THEN '{}'::text[] ELSE
        ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(c.oid, a.attnum, 'UPDATE') ORDER BY a.attnum) END,
      CASE WHEN has_table_privilege(c.oid, 'INSERT') THEN '{}'::text[] ELSE
        ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(c.oid, a.attnum, 'INSERT') ORDER BY a.attnum) END,
      ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = ANY($2::text[])
    """)

  /// Returns the settings with the limits of others: the mirror follows changed rights itself.
  func withLimits(of other: MirrorConfiguration) -> MirrorConfiguration {
    var settings = self
    for (name, adoption) in adoptions {
      settings.adoptions[name]?.limits = other.adoptions[name]?.limits ?? adoption.limits
    }
    return settings
  }
}

/// Changed rights, in the rounds of a mirror.
extension MirrorRounds {
  /// Returns the changed limits of adopted tables, by table.
  func otherLimits() async throws -> [String: WriteLimits] {
    let configuration = configuration
    if configuration.adoptions.isEmpty { return [:] }
    return try await pool.run { try configuration.otherLimits($0) }
  }

  /// Stores changed limits for the next steps. The triggers capture the same writes as before.
  func adapt(to limits: [String: WriteLimits]) throws {
    if limits.isEmpty { return }
    var settings = configuration
    for (name, limits) in limits.sorted(by: { $0.key < $1.key }) {
      let former = settings.adoptions[name]?.limits ?? WriteLimits()
      settings.adoptions[name]?.limits = limits
      sides.log("followed", "table \(name): \(limits.changes(since: former))")
    }
    try sides.save(settings)
    followed.withLock { [settings] in $0 = settings }
  }
}

extension Error {
  /// True if a change of a table, or of a right on it, may be the reason: the mirror may follow it.
  var mayBeFollowed: Bool {
    if self is MirrorStopped { return true }
    return (self as? PostgresError).map { $0.isAboutRights || $0.isAboutDefinition } ?? false
  }
}
