import CFerryPostgres
import Foundation

extension PostgresConnection {
  /// Bytes of a message for which libpq's buffers are too large to stay.
  private static let largeMessage = 4 << 20

  /// The expected results from the server, in the order of sending.
  private enum Expected {
    case begin
    case settings
    case prepared(String, Prepared)
    case rows
    case commit
  }

  /// Sends all, then reads all: one round trip.
  @discardableResult
  func run(_ pipeline: PostgresPipeline) throws(PostgresError) -> [PostgresRows] {
    guard let observer else { return try exchange(pipeline) }
    let end = observer.roundTrip(pipeline.statementNames)
    do throws(PostgresError) {
      let results = try exchange(pipeline)
      end(nil)
      return results
    } catch {
      end(error)
      throw error
    }
  }

  /// It cannot deadlock: the socket is non-blocking, and while there are bytes to send, the
  /// server's answers are read (libpq manual, "Pipeline Mode").
  private func exchange(_ pipeline: PostgresPipeline) throws(PostgresError) -> [PostgresRows] {
    precondition(transactionState != .ended, "the transaction has been committed")
    precondition(
      !pipeline.commits || transactionState != .none, "commit() is for use within transaction")
    guard !pipeline.hasZeroByte else { throw .zeroByte }
    let mayCommit = pipeline.commits || PQtransactionStatus(handle) == PQTRANS_IDLE && !willBegin
    guard PQenterPipelineMode(handle) == 1 else { throw failure(mayCommit: false) }
    guard let expected = enqueue(pipeline), PQpipelineSync(handle) == 1 else {
      throw broken(mayCommit: false)
    }
    guard flush() else { throw broken(mayCommit: mayCommit) }
    let results = try receive(expected, mayCommit: mayCommit)
    if pipeline.commits { transactionState = .ended }
    return results
  }

  private var willBegin: Bool {
    if case .toBegin = transactionState { true } else { false }
  }

  /// Puts everything into libpq's buffer, which sends as much as the socket takes; `nil` on
  /// failure.
  private func enqueue(_ pipeline: PostgresPipeline) -> [Expected]? {
    var expected: [Expected] = []
    if case .toBegin(let begin) = transactionState {
      guard send(.once(begin), []) else { return nil }
      expected.append(.begin)
    }
    if let transactionSettings, transactionState != .open {
      guard send(.once(transactionSettings.sql(isLocal: true)), []) else { return nil }
      expected.append(.settings)
    }
    if let observer, transactionState != .open {
      guard send(PostgresObserver.naming, [.text(observer.applicationName)]) else { return nil }
      expected.append(.settings)
    }
    var new: [String: Prepared] = [:]
    for command in pipeline.commands {
      let (statement, parameters) = (command.statement, command.parameters)
      if parameters.byteCount > Self.largeMessage { hasLargeBuffers = true }
      if !statement.name.isEmpty, keepsStatements {
        let wanted = Prepared(sql: statement.sql, types: parameters.types)
        if let known = prepared[statement.name] ?? new[statement.name] {
          precondition(
            known.sql == wanted.sql && known.types == wanted.types,
            "statement \(statement.name) was prepared with other SQL or other parameter types")
        } else {
          guard prepare(statement, wanted.types) else { return nil }
          new[statement.name] = wanted
          expected.append(.prepared(statement.name, wanted))
        }
      }
      guard send(statement, parameters) else { return nil }
      expected.append(.rows)
    }
    if pipeline.commits, !willBegin || !pipeline.commands.isEmpty {
      guard send(.once("COMMIT"), []) else { return nil }
      expected.append(.commit)
    }
    return expected
  }

  private func prepare(_ statement: PostgresStatement, _ types: [PostgresType]) -> Bool {
    PQsendPrepare(
      handle, statement.name, statement.sql, Int32(types.count), types.map(\.oid)) == 1
  }

  private func send(_ statement: PostgresStatement, _ parameters: PostgresParameters) -> Bool {
    let count = Int32(parameters.count)
    return parameters.withPointers { types, values, lengths, formats in
      if statement.name.isEmpty || !keepsStatements {
        PQsendQueryParams(handle, statement.sql, count, types, values, lengths, formats, 1) == 1
      } else {
        PQsendQueryPrepared(handle, statement.name, count, values, lengths, formats, 1) == 1
      }
    }
  }

  /// Reads every answer up to the synchronisation point, then throws the first error.
  private func receive(
    _ expected: [Expected], mayCommit: Bool
  ) throws(PostgresError) -> [PostgresRows] {
    var results: [PostgresRows] = []
    var firstError: PostgresError?
    for expectation in expected {
      while let result = nextResult() {
        do throws(PostgresError) {
          if let rows = try accept(result, as: expectation, mayCommit: mayCommit) {
            results.append(rows)
          }
        } catch {
          firstError = firstError ?? error
        }
      }
      if hasGivenUp || PQstatus(handle) == CONNECTION_BAD { break }
    }
    let errorAtEnd = synchronise(mayCommit: mayCommit)
    if let error = firstError ?? errorAtEnd { throw error }
    return results
  }

  /// Takes over one result; returns it if it is for the caller.
  private func accept(
    _ result: OpaquePointer, as expectation: Expected, mayCommit: Bool
  ) throws(PostgresError) -> PostgresRows? {
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: break
    case PGRES_PIPELINE_ABORTED:
      PQclear(result)
      return nil
    default:
      defer { PQclear(result) }
      throw failure(result, mayCommit: mayCommit)
    }
    let rows = PostgresRows(owning: result)
    if rows.byteCount > Self.largeMessage, rows.hasValue(above: Self.largeMessage / 4) {
      hasLargeBuffers = true
    }
    switch expectation {
    case .begin: transactionState = .open
    case .settings: break
    case .prepared(let name, let statement): prepared[name] = statement
    case .rows: return rows
    case .commit: if rows.commandTag != "COMMIT" { throw .rolledBack }
    }
    return nil
  }

  /// Reads on to the end of the pipeline and leaves pipeline mode.
  private func synchronise(mayCommit: Bool) -> PostgresError? {
    var firstError: PostgresError?
    var isSynchronised = false
    var silences = 0
    while !isSynchronised, !hasGivenUp, silences < 3, PQstatus(handle) == CONNECTION_OK {
      guard let result = nextResult() else {
        silences += 1
        continue
      }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_PIPELINE_SYNC: isSynchronised = true
      case PGRES_PIPELINE_ABORTED: break
      // A failed commit, for example on a deferred constraint, is reported here.
      default: firstError = firstError ?? failure(result, mayCommit: mayCommit)
      }
    }
    if !isSynchronised || PQexitPipelineMode(handle) == 0 {
      return firstError ?? broken(mayCommit: mayCommit)
    }
    return firstError
  }
}
