/// SQL with `$1`-style parameters, prepared once on each connection under its name.
package struct PostgresStatement: Sendable, Hashable {
  /// Unique among all statements of a pool, at most 63 bytes; empty for an unprepared one.
  package let name: String
  package let sql: String

  package init(_ name: String, _ sql: String) {
    precondition(!name.isEmpty && name.utf8.count <= 63, "a statement needs a name of 1–63 bytes")
    self.name = name
    self.sql = sql
  }

  private init(unnamed sql: String) {
    name = ""
    self.sql = sql
  }

  /// Returns a statement for one use, parsed each time and never cached.
  package static func once(_ sql: String) -> PostgresStatement {
    PostgresStatement(unnamed: sql)
  }
}
