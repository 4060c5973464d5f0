import FerryProtocol

/// SQL to record the writes of programs from PostgreSQL's log, and to mark the mirror's own.
extension MirrorSQL {
  // MARK: Marks

  /// Returns the SQL of a mark in the log. The server adds the mirror's word: PostgreSQL may write
  /// statements and parameters to other logs, and shows statements to other roles.
  static func mark(_ mirror: Int64, _ words: String..., rest: String = "") -> String {
    let text = "\n" + words.joined(separator: "\n")
    return """
      pg_logical_emit_message(true, '\(LogMark.prefix)',
        (SELECT secret FROM \(ledger).logs WHERE mirror = \(mirror)) || \(quoted(postgres: text))\(rest))
      """
  }

  /// Marks the beginning of a statement of a step; `nil` without a capture from the log.
  var open: String? { isLogged ? "SELECT \(Self.mark(mirror, "open", function))" : nil }

  /// Marks that the step has captured whole rows; `nil` without a capture from the log.
  var made: String? { isLogged ? "SELECT \(Self.mark(mirror, "made"))" : nil }

  /// Returns a statement of a step with a mark behind the changed rows. The effects of triggers
  /// follow: they run at the end of the statement. It returns a row if it changes any.
  func own(_ statement: String) -> String {
    guard isLogged else { return statement }
    return """
      WITH w AS (\(statement) RETURNING 1)
      SELECT FROM (SELECT count(*) AS n, \(Self.mark(mirror, "close")) AS m FROM w) c
      WHERE CASE WHEN m IS NULL THEN 0 ELSE n END > 0
      """
  }

  /// Marks rows as the step's own, although an effect may have changed them.
  func forgetLogged(areDeleted: Bool) -> String {
    let keys = table.key.indices.map { "x.k\($0)" }.joined(separator: ", ")
    let rest = " || json_agg(json_build_array(\(keys)))::text"
    return """
      SELECT \(Self.mark(mirror, areDeleted ? "gone" : "back", function, "", rest: rest))
      FROM \(source(keysOnly: true)) HAVING count(*) > 0
      """
  }

  /// Removes captured rows of a transaction. The parameters are the transaction and the keys.
  func forgetCaptured(areDeleted: Bool) -> String {
    """
    DELETE FROM \(Self.ledger).captured c
    USING (SELECT ARRAY(SELECT json_array_elements_text(e)) AS key
      FROM json_array_elements($2::text::json) e) k
    WHERE c.xid = $1::text::xid8 AND c.mirror = \(mirror) AND c.tab = \(name) AND c.key = k.key
      \(areDeleted ? "" : "AND c.kind = 'D'")
    """
  }
}
