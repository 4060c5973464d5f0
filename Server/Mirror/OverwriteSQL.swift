import FerryProtocol

/// SQL of captured effects on rows that a step overwrites: triggers of former statements have
/// changed them.
///
/// The step's values replace the effects. Amounts and merged texts of updates stay, as writes of a
/// kind of their own: the space adds them to its row, and the row returns to the table.
struct OverwriteSQL {
  /// The kind of captured updates that a step has overwritten since.
  static let kind = "E"

  let sql: MirrorSQL

  /// The columns whose writes the space adds up or merges. The step overwrites no others.
  private var merging: [String] {
    sql.table.updatable.filter { [.counter, .textMerge].contains($0.policy) }
      .map { quoted(postgres: $0.name.text) }
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
      \(row).mirror = \(sql.mirror) AND \(row).xid = \(transaction) AND \(row).tab = \(sql.literal)
        AND \(row).key = k.key
      """
    }
    let names = sql.list(merging)
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
        WHERE c.mirror = \(sql.mirror) AND c.xid = \(transaction) AND c.id = a.id)
      \(rest)
      """
  }
}
