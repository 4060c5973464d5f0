import CFerryPostgres
import FerryProtocol
import Foundation

/// A connection that reads the changes of a publication from the log, through a slot; all calls
/// block. One thread uses it.
package final class ReplicationStream {
  /// The reason for the end of a wait.
  package enum Event: Sendable {
    case frame(ReplicationFrame)
    case woken, timedOut
  }

  /// The identity of the server's log. A restored or another server has another one.
  package struct Source: Sendable, Equatable, CustomStringConvertible {
    package var system: String
    package var timeline: String

    package var description: String { "\(system)/\(timeline)" }
  }

  /// Settings on which the texts of values depend.
  package static let settings = PostgresSettings([
    ("datestyle", "ISO, YMD"), ("intervalstyle", "postgres"), ("timezone", "UTC"),
    ("extra_float_digits", "1"), ("bytea_output", "hex"), ("xmloption", "content"),
    ("search_path", "pg_catalog, pg_temp"),
    ("statement_timeout", "0"), ("lock_timeout", "0"),
    // What a reader confirms is on the disk: the log forgets it.
    ("synchronous_commit", "on"),
  ])

  /// The longest wait for an answer.
  private static let answerLimit = Duration.seconds(30)

  private let connection: PostgresConnection
  private let wakePipe: WakePipe
  package let source: Source

  /// Connects; ``start(slot:publication:from:)`` begins to read.
  ///
  /// - Parameter wakePipe: ends waits.
  package init(url: String, wakePipe: WakePipe) throws(PostgresError) {
    let target = try ConnectionTarget(url).forReplication
    let handle = target.withParameters { PQconnectdbParams($0, $1, 1) }
    connection = try PostgresConnection(owning: handle)
    connection.patience.limit = Self.answerLimit
    self.wakePipe = wakePipe
    try connection.executeAsIs(Self.settings.sql(isLocal: false))
    guard PQsendQuery(connection.handle, "IDENTIFY_SYSTEM") == 1, connection.flush() else {
      throw connection.broken(mayCommit: false)
    }
    var found: [String] = []
    while let result = connection.nextResult() {
      defer { PQclear(result) }
      guard PQresultStatus(result) == PGRES_TUPLES_OK, PQntuples(result) == 1 else {
        throw connection.failure(result, mayCommit: false)
      }
      found = (0..<PQnfields(result)).map { String(cString: PQgetvalue(result, 0, $0)) }
    }
    guard found.count > 1 else {
      throw PostgresError(.unexpectedResult, "the server does not identify its log")
    }
    source = Source(system: found[0], timeline: found[1])
  }

  /// Returns the reason if no connection for the log can be made, such as through a proxy; `nil` if
  /// one can.
  package static func obstacle(to url: String) throws(PostgresError) -> String? {
    do {
      _ = try ReplicationStream(url: url, wakePipe: WakePipe())
      return nil
    } catch {
      if error.kind == .invalidURL { throw error }
      return "a connection for it fails: \(error.message)"
    }
  }

  /// Begins to read.
  ///
  /// - Parameter from: the position of the reader; the server may begin earlier.
  /// - Throws: ``PostgresError`` with the state `55006` if another connection reads the slot.
  package func start(
    slot: String, publication: String, from: PostgresLSN
  ) throws(PostgresError) {
    let sql = """
      START_REPLICATION SLOT \(quoted(Name(slot))) LOGICAL \(from) (proto_version '2',
        streaming 'on', messages 'true',
        publication_names \(quoted(literal: quoted(Name(publication)))))
      """
    guard PQsendQuery(connection.handle, sql) == 1, connection.flush() else {
      throw connection.broken(mayCommit: false)
    }
    guard let result = connection.nextResult() else { throw connection.broken(mayCommit: false) }
    defer { PQclear(result) }
    guard PQresultStatus(result) == PGRES_COPY_BOTH else {
      throw connection.failure(result, mayCommit: false)
    }
  }

  /// Returns the next frame, or the reason why there is none.
  package func next(within timeout: Duration) throws -> Event {
    while true {
      var buffer: UnsafeMutablePointer<CChar>?
      let length = PQgetCopyData(connection.handle, &buffer, 1)
      if length > 0, let buffer {
        defer { PQfreemem(buffer) }
        let bytes = [UInt8](UnsafeRawBufferPointer(start: buffer, count: Int(length)))
        return .frame(try ReplicationFrame(bytes))
      }
      guard length == 0 else { throw ended() }
      switch wakePipe.wait(
        for: PQsocket(connection.handle), events: POLLIN, timeout: timeout)
      {
      case .woken:
        wakePipe.drain()
        return .woken
      case .timedOut: return .timedOut
      case .ready:
        guard PQconsumeInput(connection.handle) == 1 else {
          throw connection.broken(mayCommit: false)
        }
      }
    }
  }

  /// Returns the reason why the server has ended the stream.
  private func ended() -> PostgresError {
    guard let result = connection.nextResult() else { return connection.broken(mayCommit: false) }
    defer { PQclear(result) }
    return connection.failure(result, mayCommit: false)
  }

  /// Reports the reader's position to the server.
  ///
  /// - Parameter asksReply: whether the server has to answer, as a sign of life.
  package func report(
    _ progress: ReplicationProgress, asksReply: Bool = false
  ) throws(PostgresError) {
    let status = ReplicationFrame.status(
      received: progress.received, confirmed: progress.confirmed, asksReply: asksReply)
    let isQueued = status.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        PQputCopyData(connection.handle, $0.baseAddress, Int32($0.count)) == 1
      }
    }
    guard isQueued, connection.flush() else { throw connection.broken(mayCommit: false) }
  }
}
