import FerryProtocol

/// SQL of a comparison of a table with the rows of a replica.
struct ComparisonSQL {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }

  /// The statements of a comparison: a table for the replica's rows, and these rows. The types are
  /// the mirror's: a company's type may round a value.
  var makeCopy: String {
    let columns = table.all.map { "NULL::\($0.type.rawValue) AS \(quoted($0.name))" }
    return "CREATE TEMP TABLE ferry_copy ON COMMIT DROP AS SELECT "
      + columns.joined(separator: ", ") + " WITH NO DATA"
  }

  var fillCopy: String {
    "INSERT INTO ferry_copy SELECT \(sql.values.joined(separator: ", ")) "
      + "FROM \(sql.source(keysOnly: false))"
  }

  /// Returns the keys of differing rows, whether the table has the row, and whether the copy has.
  ///
  /// - Parameters:
  ///   - withDeferred: whether rows that the table cannot hold count.
  ///   - withCaptured: whether rows count whose writes are on their way.
  func differences(withDeferred: Bool, withCaptured: Bool = false) -> String {
    let keys = table.key.map { quoted($0.name) }
    let on = keys.map { "t.\($0) = c.\($0)" }.joined(separator: " AND ")
    let isOther = "t.\(keys[0]) IS NULL OR c.\(keys[0]) IS NULL OR \(sql.differs("t", "c"))"
    let key = sql.list(
      table.key.map {
        let name = quoted($0.name)
        return $0.type.keyEncoded("coalesce(t.\(name), c.\(name))")
      })
    let found = """
      SELECT \(key) AS key, t.\(keys[0]) IS NOT NULL AS here, c.\(keys[0]) IS NOT NULL AS there
      FROM \(sql.travelling) t FULL JOIN ferry_copy c ON \(on) WHERE (\(isOther))
      """
    var noted = [("unsent", "d.key = f.key")]
    if !withCaptured {
      noted.append(("captured", "(d.key = f.key OR d.kind = 'K' AND d.olds = f.key)"))
    }
    if !withDeferred { noted.append(("deferred", "d.key = f.key")) }
    let conditions = noted.map { name, isRow in
      """
      NOT EXISTS (SELECT FROM \(MirrorSQL.ledger).\(name) d WHERE d.mirror = \(sql.mirror)
        AND d.tab = \(sql.literal) AND \(isRow))
      """
    }
    return "SELECT * FROM (\(found)) f WHERE "
      + (["true"] + conditions).joined(separator: " AND ")
  }

  /// The statements of a comparison with the rows of a removed mirror: a table for the keys of
  /// differing rows.
  static let makeDiffering =
    "CREATE TEMP TABLE ferry_differing(key text[], here boolean, there boolean) ON COMMIT DROP"

  /// Finds the differing rows.
  var fillDiffering: String {
    """
    INSERT INTO ferry_differing SELECT f.key, f.here, f.there
    FROM (\(differences(withDeferred: true, withCaptured: true))) f
    """
  }
}
