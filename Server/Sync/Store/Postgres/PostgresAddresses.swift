import FerryPostgres

/// The addresses of one PostgreSQL database: `postgres://…` URLs, each of which may name several
/// servers. They may contain passwords.
///
/// ```swift
/// var addresses = PostgresAddresses("postgres://pooler:6432/ferry")
/// addresses.direct = "postgres://primary:5432/ferry"
/// ```
package struct PostgresAddresses: Sendable, Equatable {
  /// For commits and most reads.
  package var main: String
  /// The database without a proxy, if `main` is a proxy that pools transactions. Notifications, the
  /// start and maintenance go there.
  package var direct: String?
  /// A hot standby, which serves pulls.
  package var reads: String?
  /// A worker of Citus, which takes packets and serves pulls; `main` is the coordinator then.
  package var worker: String?

  package init(
    _ main: String, direct: String? = nil, reads: String? = nil, worker: String? = nil
  ) {
    (self.main, self.direct, self.reads, self.worker) = (main, direct, reads, worker)
  }

  /// True if sessions of the main address are shared: a direct address means a proxy.
  var sharing: PostgresSharing { direct == nil ? .session : .transaction }

  /// All given addresses.
  var all: [String] { [main, direct, reads, worker].compactMap(\.self) }
}
