import FerryPlatform

/// A query whose rows may be large, written once for both stores. PostgreSQL sums up the bytes, so
/// large values never fill the memory; SQLite reads one row after the other.
package struct PlainScan: Sendable {
  /// For SQLite.
  let plain: PlainStatement
  /// For PostgreSQL: the limit of the bytes follows the other parameters.
  let bounded: PlainStatement
  /// The place of the large column.
  let large: Int

  /// - Parameters:
  ///   - columns: The columns of the query, in order.
  ///   - large: One of them: the only large one.
  ///   - order: Another one: the query is in this order.
  ///   - count: The number of parameters.
  ///   - query: Continues `SELECT` and the columns. It has a LIMIT.
  init(
    _ name: String, _ columns: [String], large: String, order: String, parameters count: Int,
    _ query: String
  ) {
    guard let place = columns.firstIndex(of: large) else {
      preconditionFailure("the query has no column \(large)")
    }
    self.large = place
    let list = columns.joined(separator: ", ")
    plain = PlainStatement(name, "SELECT \(list) \(query)")
    bounded = PlainStatement(
      name,
      """
      SELECT \(list) FROM (
        SELECT *, sum(octet_length(\(large))) OVER (ORDER BY \(order) ROWS UNBOUNDED PRECEDING)
          - octet_length(\(large)) AS before
        FROM (SELECT \(list) \(query)) AS listed
      ) AS summed WHERE before < $\(count + 1) ORDER BY \(order)
      """)
  }
}
