/// The view of a transaction on others' concurrent work (PostgreSQL manual, chapter 13.2).
package enum PostgresIsolation: String, Sendable {
  case readCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"
  case repeatableRead = "BEGIN ISOLATION LEVEL REPEATABLE READ"
  /// Several queries on one unchanging view.
  case snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

extension PostgresConnection {
  /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
  ///
  /// BEGIN costs no separate round trip: it goes out with the first statement. COMMIT costs one,
  /// unless the last pipeline calls `commit()`. Transactions do not nest.
  package func transaction<T>(
    _ isolation: PostgresIsolation = .readCommitted, _ body: (PostgresConnection) throws -> T
  ) throws -> T {
    precondition(transactionState == .none, "transactions do not nest")
    transactionState = .toBegin(isolation.rawValue)
    defer { transactionState = .none }
    do {
      let value = try body(self)
      try commitIfOpen()
      return value
    } catch {
      reset()
      throw error
    }
  }

  private func commitIfOpen() throws(PostgresError) {
    guard transactionState == .open else { return }
    try run(PostgresPipeline.commitOnly)
  }
}

extension PostgresError {
  /// COMMIT was asked for, but a statement had failed before.
  static var rolledBack: PostgresError {
    PostgresError(
      .server, "the transaction was rolled back, because a statement in it had failed",
      sqlState: "25P02")
  }
}
