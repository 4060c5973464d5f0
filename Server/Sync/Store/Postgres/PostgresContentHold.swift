import FerryPlatform
import FerryPostgres

/// A lock in the database against the collection of missions' content by other nodes, until it is
/// released. It has a separate connection: a holder waiting for one from the pool would wait for
/// other holders.
///
/// SAFETY: after its making, only the end uses the connection.
final class PostgresContentHold: @unchecked Sendable {
  private static let key = 738_094_595

  private let connection: PostgresConnection

  private init(_ url: String, isExclusive: Bool) throws(PostgresError) {
    connection = try PostgresConnection(url: url)
    let lock = isExclusive ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared"
    // Publishers wait behind a waiting collector: it gives up first, and comes again later.
    let limit = isExclusive ? "10s" : "60s"
    // In a transaction, so a proxy that pools transactions keeps the session for it.
    // text: three statements of constants
    try connection.execute(
      """
      BEGIN; SET LOCAL lock_timeout = '\(limit)'; SET LOCAL idle_in_transaction_session_timeout = 0;
      SELECT \(lock)(\(Self.key))
      """)
  }

  /// Waits for the lock, for a minute at most; for an exclusive one, for ten seconds.
  static func acquire(_ url: String, isExclusive: Bool) async throws -> PostgresContentHold {
    try await ThreadExecutor(name: "ferry-hold").run {
      try PostgresContentHold(url, isExclusive: isExclusive)
    }
  }
}
