import FerryProtocol
import FerrySQLite

/// Questions of the recording about rows, while a remote change is applied (``AppliedChange``).
extension ReplicaFile {
  /// Answers the questions of this space's recording.
  func answerCapture() {
    capture.hasRow = { [unowned self] in try hasRow($0) }
    capture.hasLostParent = { [unowned self] in try hasLostParent($0) }
  }

  private func hasRow(_ key: RecordKey) throws -> Bool {
    let table = try schema(of: key.table)
    return try connection.exists(
      "SELECT 1 FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))", key.record)
  }

  /// Returns true if a record's row refers to an absent row of an untracked table.
  private func hasLostParent(_ key: RecordKey) throws -> Bool {
    let table = try schema(of: key.table)
    if table.references.isEmpty { return false }
    let tracked = Set(try tracked.locals().map(\.folded))
    return try numberedLinks(of: table).map(\.link).contains { link in
      if tracked.contains(link.parent.folded) { return false }
      let from = link.from.map { "c.\(quoted($0))" }
      let match = zip(link.to, from).map { "p.\(quoted($0)) = \($1)" }.joined(separator: " AND ")
      return try connection.exists(
        """
        SELECT 1 FROM \(quoted(table.local)) AS c WHERE \(table.has(record: "?1", in: "c"))
          AND \(from.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
          AND NOT EXISTS (SELECT 1 FROM \(quoted(link.parent)) AS p WHERE \(match))
        """, key.record)
    }
  }
}
