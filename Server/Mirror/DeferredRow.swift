/// A row that the table in PostgreSQL cannot hold.
package struct DeferredRow: Sendable, Equatable, CustomStringConvertible {
  package var table: String
  package var key: [String?]
  package var reason: String

  package var description: String {
    "\(table) \(key.map { $0 ?? "NULL" }.joined(separator: ", ")): \(reason)"
  }

  /// The table and the key.
  var row: [String?] { [table] + key }
}
