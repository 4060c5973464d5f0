/// Statements to send together, in order, without waiting for each answer.
package struct PostgresPipeline: Sendable {
  struct Command: Sendable {
    var statement: PostgresStatement
    var parameters: PostgresParameters
  }

  private(set) var commands: [Command] = []
  private(set) var commits = false

  init() {}

  /// COMMIT and nothing else.
  static var commitOnly: PostgresPipeline {
    var pipeline = PostgresPipeline()
    pipeline.commit()
    return pipeline
  }

  /// Queues a statement; returns the index among the results.
  @discardableResult
  package mutating func add(
    _ statement: PostgresStatement, _ parameters: PostgresParameters = []
  ) -> Int {
    precondition(!commits, "nothing may follow COMMIT")
    commands.append(Command(statement: statement, parameters: parameters))
    return commands.count - 1
  }

  /// True if SQL for one use contains U+0000: libpq would cut it there.
  var hasZeroByte: Bool {
    commands.contains { $0.statement.name.isEmpty && $0.statement.sql.utf8.contains(0) }
  }

  /// Ends the enclosing `transaction` with this round trip. It must be the last.
  package mutating func commit() { commits = true }
}
