import FerryProtocol
import FerrySQLite

/// The tables behind SQLite's "FOREIGN KEY constraint failed", which names none.
extension ReplicaFile {
  /// Runs a write to one record. If a foreign key rejects it, the error names the table with the
  /// rows that refer to the record, or the one to which the record refers.
  func namingForeignKeys<T>(of key: RecordKey, _ write: () throws -> T) throws -> T {
    do {
      return try write()
    } catch let error as SQLiteError where error.isForeignKey && connection.isInTransaction {
      guard let reason = try foreignKeyReason(of: key) else { throw error }
      throw SQLiteError(code: error.code, message: "\(error.message): \(reason)", sql: error.sql)
    }
  }

  private func foreignKeyReason(of key: RecordKey) throws -> String? {
    let table = try schema(of: key.table)
    let links = try plans.parentRules(in: self).all
    for link in links where link.parent.folded == table.local.folded && link.isRestricting {
      let isReferred = try connection.exists(
        """
        SELECT 1 FROM \(quoted(table.local)) AS p JOIN \(quoted(link.child.local)) AS c
          ON \(link.match(parent: "p", child: "c")) WHERE \(table.has(record: "?1", in: "p"))
        """, key.record)
      if isReferred { return "rows of \(link.child.local) refer to a row of \(table.local)" }
    }
    let parents = links.filter { $0.child.local.folded == table.local.folded }.map { link in
      "\(link.from.map(\.text).joined(separator: ", ")) refers to \(link.parent)"
    }
    return parents.isEmpty ? nil : "in \(table.local), " + parents.prefix(3).joined(separator: "; ")
  }
}

extension ParentLink {
  /// True if SQLite rejects a delete of the parent.
  fileprivate var isRestricting: Bool { action == .restrict || action == .none }

  fileprivate func match(parent: String, child: String) -> String {
    zip(from, to).map { "\(parent).\(quoted($1)) = \(child).\(quoted($0))" }
      .joined(separator: " AND ")
  }
}
