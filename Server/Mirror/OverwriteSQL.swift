import FerryProtocol

/// SQL of captured effects on rows that a step overwrites: triggers of former statements have
/// changed them.
///
/// The step's values replace the effects. Amounts and merged texts of updates stay, as writes of a
/// kind of their own: the space adds them to its row, and the row returns to the table.
struct OverwriteSQL {
  /// The kind of captured updates that a step has overwritten since.
  static let kind = "E"

  let mirror: Int64
  /// The SQL of the table's name.
  let literal: String
  /// The SQL of the columns whose writes the space adds up or merges; empty if there are none. The
  /// step overwrites no others.
  let merging: String

  init(sql: MirrorSQL) {
    (mirror, literal, merging) = (sql.mirror, sql.literal, Self.merging(of: sql))
  }

  init(mirror: Int64, literal: String, merging: String) {
    (self.mirror, self.literal, self.merging) = (mirror, literal, merging)
  }

  static func merging(of sql: MirrorSQL) -> String {
    let names = sql.table.updatable.filter { [.counter, .textMerge].contains($0.policy) }
      .map { quoted(postgres: $0.name.text) }
    return names.isEmpty ? "" : sql.list(names)
  }

  /// Removes captured changes of rows to overwrite.
  ///
  /// - Parameters:
  ///   - keys: a query of the keys, as `key`.
  ///   - transaction: the SQL of the step's transaction.
  ///   - condition: further removed changes `c` fulfil it.
  func forget(_ keys: String, in transaction: String, where condition: String = "true") -> String {
    let captured = "\(MirrorSQL.ledger).captured"
    let isOurs = { (row: String) in
      """
      \(row).mirror = \(mirror) AND \(row).xid = \(transaction) AND \(row).tab = \(literal)
        AND \(row).key = k.key
      """
    }
    let names = merging.isEmpty ? "ARRAY[]::text[]" : merging
    let rest = """
      DELETE FROM \(captured) c USING k WHERE \(isOurs("c")) AND c.kind <> '\(Self.kind)'
        AND NOT (c.kind = 'U' AND c.names && \(names)) AND (\(condition))
      """
    if merging.isEmpty { return "WITH k AS (\(keys)) \(rest)" }
    return """
      WITH k AS (\(keys)), amounts AS (
        UPDATE \(captured) c
        SET kind = '\(Self.kind)', names = a.names, vals = a.vals, olds = a.olds
        FROM (SELECT u.id, m.names, m.vals, m.olds
          FROM \(captured) u JOIN k ON \(isOurs("u"))
          CROSS JOIN LATERAL (SELECT array_agg(name ORDER BY place) AS names,
              array_agg(val ORDER BY place) AS vals, array_agg(old ORDER BY place) AS olds
            FROM unnest(u.names, u.vals, u.olds) WITH ORDINALITY n(name, val, old, place)
            WHERE name = ANY(\(names))) m
          WHERE u.kind = 'U' AND m.names IS NOT NULL) a
        WHERE c.mirror = \(mirror) AND c.xid = \(transaction) AND c.id = a.id)
      \(rest)
      """
  }
}
