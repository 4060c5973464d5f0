import FerryProtocol

/// Run-time settings for all work of a pool (PostgreSQL manual, chapter 20.1).
///
/// ```swift
/// let settings = PostgresSettings([("jit", "off"), ("statement_timeout", "30s")])
/// ```
package struct PostgresSettings: Sendable, ExpressibleByArrayLiteral {
  /// Names and values, in the order in which they are set.
  private let values: [(name: String, value: String)]

  /// - Parameter values: Names and values.
  package init(_ values: [(name: String, value: String)]) { self.values = values }

  package init(arrayLiteral elements: (name: String, value: String)...) {
    self.init(elements)
  }

  /// Changes nothing.
  package static let none: PostgresSettings = []

  var isEmpty: Bool { values.isEmpty }

  /// Returns the SQL to set them for one transaction or for a session.
  func sql(isLocal: Bool) -> String {
    let calls = values.map { setting in
      "set_config(\(quoted(postgres: setting.name)), \(quoted(postgres: setting.value)), \(isLocal))"
    }
    return "SELECT " + calls.joined(separator: ", ")
  }
}

/// The time for which a session of the server belongs to a connection.
package enum PostgresSharing: Sendable, Equatable {
  /// As long as the connection: the server itself, or a proxy that pools sessions.
  case session
  /// For one transaction: a proxy gives the next one another session (pgbouncer's
  /// `pool_mode = transaction`). Then the server keeps neither statements nor settings, and
  /// settings go with each transaction.
  case transaction
}
