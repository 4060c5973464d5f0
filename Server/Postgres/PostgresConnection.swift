import CFerryPostgres
import Foundation

/// A connection. Every call blocks until the server has answered. So it belongs on a separate
/// thread (`PostgresPool` gives it one) and never on Swift's cooperative pool.
package final class PostgresConnection {
  /// The statement sent under a name on this connection.
  struct Prepared {
    var sql: String
    var types: [PostgresType]
  }

  /// The progress of the transaction of `transaction(_:_:)`.
  enum TransactionState: Equatable {
    case none
    /// BEGIN goes out with the first statement.
    case toBegin(String)
    case open
    /// A pipeline has sent COMMIT; nothing may follow.
    case ended
  }

  let handle: OpaquePointer
  var prepared: [String: Prepared] = [:]
  var transactionState = TransactionState.none
  /// The connection is broken, or the prepared statements are out of date: not to be used again.
  var isStale = false
  /// True if libpq has had large values in the buffers, which never become smaller. Such a
  /// connection is closed after the work.
  var hasLargeBuffers = false
  /// Settings sent with each transaction; `nil` if the session keeps them.
  private(set) var transactionSettings: PostgresSettings?
  /// True if the session keeps prepared statements for this connection.
  let keepsStatements: Bool
  /// The time to wait for an answer.
  var patience = PostgresPatience()
  /// Observes the work of the present caller; `nil` for no observation.
  package var observer: PostgresObserver?
  /// True if an answer did not come in time, so the work was given up.
  var hasGivenUp = false

  /// Connects. Throws `invalidURL` or `connectionFailed`, or the error of a wrong setting.
  package convenience init(
    url: String, settings: PostgresSettings = .none
  ) throws(PostgresError) {
    try self.init(target: try ConnectionTarget(url), settings: settings)
  }

  convenience init(
    target: ConnectionTarget, settings: PostgresSettings, sharing: PostgresSharing = .session,
    patience: PostgresPatience = PostgresPatience()
  ) throws(PostgresError) {
    let handle = target.withParameters { PQconnectdbParams($0, $1, 1) }
    try self.init(owning: handle, sharing: sharing)
    self.patience = patience
    guard !settings.isEmpty else { return }
    switch sharing {
    case .session: try apply(settings)
    case .transaction: transactionSettings = settings
    }
  }

  /// Takes over a handle after the end of connecting, with success or failure.
  init(owning handle: OpaquePointer?, sharing: PostgresSharing = .session) throws(PostgresError) {
    keepsStatements = sharing == .session
    guard let handle, PQstatus(handle) == CONNECTION_OK else {
      let error = ConnectionTarget.failure(handle)
      PQfinish(handle)
      throw error
    }
    self.handle = handle
    PQsetNoticeProcessor(handle, { _, _ in }, nil)
    PQsetnonblocking(handle, 1)
  }

  deinit { PQfinish(handle) }

  /// True if the server reports that it takes no writes; `false` if it reports nothing (before
  /// PostgreSQL 14). It reports both settings unasked, also when they change.
  package var isReadOnly: Bool {
    isOn("in_hot_standby") || isOn("default_transaction_read_only")
  }

  private func isOn(_ setting: String) -> Bool {
    guard let value = PQparameterStatus(handle, setting) else { return false }
    return String(cString: value) == "on"
  }

  /// The server process of this connection, as in `pg_stat_activity`.
  package var backendProcessID: Int32 { PQbackendPID(handle) }

  /// Changes settings of the session, for all later work.
  package func apply(_ settings: PostgresSettings) throws(PostgresError) {
    try execute(settings.sql(isLocal: false))
  }

  /// Runs one or several statements without parameters, as text, and drops their rows.
  ///
  /// Several statements are one transaction unless they contain transaction commands.
  package func execute(_ sql: String) throws(PostgresError) {
    precondition(transactionState != .ended, "the transaction has been committed")
    if case .toBegin(let begin) = transactionState {
      transactionState = .none
      let settings = transactionSettings.map { "; " + $0.sql(isLocal: true) } ?? ""
      try executeAsIs(begin + settings)
      transactionState = .open
    }
    try executeAsIs(sql)
  }

  /// Runs one statement without parameters, for SQL with names from outside.
  ///
  /// - Throws: ``PostgresError``, also if anything follows the statement; then nothing runs.
  package func execute(single sql: String) throws(PostgresError) {
    _ = try query(.once(sql))
  }

  /// Runs one statement, preparing it in the same round trip if this connection has not yet.
  package func query(
    _ statement: PostgresStatement, _ parameters: PostgresParameters = []
  ) throws(PostgresError) -> PostgresRows {
    var pipeline = PostgresPipeline()
    pipeline.add(statement, parameters)
    let results = try run(pipeline)
    guard let rows = results.first else {
      throw PostgresError(.unexpectedResult, "the server sent no answer")
    }
    return rows
  }

  /// Runs the statements queued by `build` in one round trip and returns a result for each `add`.
  ///
  /// Outside a transaction the statements are one: all commit, or none. On an error the first one
  /// is thrown after the pipeline is drained; the connection stays usable.
  package func pipeline(
    _ build: (inout PostgresPipeline) throws -> Void
  ) throws -> [PostgresRows] {
    var pipeline = PostgresPipeline()
    try build(&pipeline)
    return try run(pipeline)
  }

  func executeAsIs(_ sql: String) throws(PostgresError) {
    if sql.utf8.contains(0) { throw .zeroByte }
    let mayCommit = PQtransactionStatus(handle) != PQTRANS_INERROR
    guard PQsendQuery(handle, sql) == 1, flush() else { throw broken(mayCommit: mayCommit) }
    var firstError: PostgresError?
    while let result = nextResult() {
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: break
      case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
        isStale = true
        throw PostgresError(.unexpectedResult, "COPY is not supported here")
      default: firstError = firstError ?? failure(result, mayCommit: mayCommit)
      }
    }
    if hasGivenUp { throw broken(mayCommit: mayCommit) }
    if let firstError { throw firstError }
  }

  /// Returns the error of a failed result; the kind depends on whether the connection has survived.
  func failure(_ result: OpaquePointer, mayCommit: Bool) -> PostgresError {
    var error = PostgresError(.server, result: result)
    // After FATAL the server closes the connection, though libpq has not seen it yet.
    if PQstatus(handle) == CONNECTION_BAD || error.severity != "ERROR" {
      isStale = true
      error.kind = .connectionLost
      error.mayHaveCommitted = mayCommit
    }
    // The plan or the statement is gone on the server, or it takes no writes any more: begin afresh
    // on a new connection.
    if ["0A000", "26000", "25006"].contains(error.sqlState) { isStale = true }
    return error
  }

  /// Returns the error of a call without a result.
  func failure(mayCommit: Bool) -> PostgresError {
    let reason = oneLine(PQerrorMessage(handle))
    var error =
      hasGivenUp
      ? PostgresError(.noAnswer, "the server did not answer in time")
      : PostgresError(.connectionLost, "the connection broke: \(reason)")
    error.mayHaveCommitted = mayCommit
    return error
  }

  /// Returns the error of a connection broken in the middle of work; it cannot be used again.
  func broken(mayCommit: Bool) -> PostgresError {
    isStale = true
    return failure(mayCommit: mayCommit)
  }
}

extension PostgresConnection {
  /// True if the connection can take work. On an idle one there is nothing to read, unless the
  /// server ends it; a rare notice costs a new connection.
  var isUsable: Bool {
    guard !isStale, PQstatus(handle) == CONNECTION_OK else { return false }
    guard PQtransactionStatus(handle) == PQTRANS_IDLE else { return false }
    var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
    return poll(&descriptor, 1, 0) == 0
  }

  /// Ends an open transaction, so the next user starts clean.
  func reset() {
    transactionState = .none
    observer = nil
    switch PQtransactionStatus(handle) {
    case PQTRANS_IDLE: return
    case PQTRANS_INTRANS, PQTRANS_INERROR:
      do { try executeAsIs("ROLLBACK") } catch { isStale = true }
    default: isStale = true
    }
  }
}
