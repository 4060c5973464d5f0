import CFerryPostgres
import FerryPlatform

/// An error between this process and PostgreSQL.
package struct PostgresError: Error, Equatable, CustomStringConvertible {
  /// The kind of the failure.
  package enum Kind: Sendable, Equatable {
    /// The connection string cannot be parsed; nothing was tried.
    case invalidURL
    /// No connection could be made, so nothing was sent.
    case connectionFailed
    /// The connection broke while in use; see `mayHaveCommitted`.
    case connectionLost
    /// The server did not answer in time, and the connection was given up; see `mayHaveCommitted`.
    case noAnswer
    /// The server takes no writes: a standby, or one set to read only.
    case readOnly
    /// All connections of the pool were in use for too long, or too much waits for them.
    case busy
    /// The server refused a statement and the connection is still good.
    case server
    /// The server's answer has another shape than expected.
    case unexpectedResult
    /// The pool was closed before the work could start.
    case poolClosed
  }

  package var kind: Kind
  /// Five characters (PostgreSQL, appendix A), if the server named a state.
  package var sqlState: String?
  /// `ERROR`, `FATAL` or `PANIC`, never localised.
  package var severity: String?
  package var message: String
  package var detail: String?
  package var hint: String?
  /// The functions in which it happened, if PostgreSQL called any.
  package var context: String?
  /// The function of PostgreSQL's source that reported it: a name in C, never localised.
  package var sourceFunction: String?
  /// The violated constraint's name.
  package var constraint: String?
  /// The connection broke after a commit may have been sent: it is not known whether the work is
  /// durable. Repeat such work only if repeating it changes nothing.
  package var mayHaveCommitted = false

  package init(
    _ kind: Kind, _ message: String, sqlState: String? = nil, detail: String? = nil,
    hint: String? = nil
  ) {
    self.kind = kind
    self.message = message
    self.sqlState = sqlState
    self.detail = detail
    self.hint = hint
  }

  /// The server reports that it is a standby, or set to read only.
  package static let readOnly = PostgresError(
    .readOnly, "the server rejects writes: it is read-only or a standby")

  /// SQL contains U+0000, which no text of PostgreSQL can have. Nothing was sent.
  static let zeroByte = PostgresError(
    .server, "SQL cannot contain U+0000", sqlState: "22021")

  /// The same work, tried again on a new transaction, may succeed: serialisation failures,
  /// deadlocks, a server shutting down, starting or full, and every lost connection.
  package var isRetryable: Bool {
    switch kind {
    case .connectionFailed, .connectionLost: true
    case .invalidURL, .unexpectedResult, .poolClosed, .noAnswer, .readOnly, .busy: false
    case .server:
      ["40001", "40P01", "57P01", "57P02", "57P03", "53300"].contains(sqlState ?? "")
    }
  }

  package var description: String {
    var text = [severity, sqlState].compactMap(\.self).joined(separator: " ")
    text += text.isEmpty ? message : ": \(message)"
    if let constraint { text += " (constraint \(constraint))" }
    if let detail { text += "; \(detail)" }
    if let hint { text += "; hint: \(hint)" }
    if mayHaveCommitted { text += "; the transaction may or may not be committed" }
    return text
  }
}

extension PostgresError {
  /// Reads the error fields of a failed result.
  init(_ kind: Kind, result: OpaquePointer) {
    func field(_ code: Int32) -> String? {
      PQresultErrorField(result, code).map { String(cString: $0) }
    }
    let message = field(ferry_diag_message) ?? oneLine(PQresultErrorMessage(result))
    self.init(
      kind, message.isEmpty ? "the server gave no reason" : message,
      sqlState: field(ferry_diag_sqlstate), detail: field(ferry_diag_detail),
      hint: field(ferry_diag_hint))
    severity = field(ferry_diag_severity)
    context = field(ferry_diag_context)
    constraint = field(ferry_diag_constraint)
    sourceFunction = field(ferry_diag_source_function)
  }
}

/// Returns a message in a single line for logs: libpq's messages span lines and end with one.
func oneLine(_ message: UnsafePointer<CChar>?) -> String {
  guard let message else { return "" }
  return String(cString: message)
    .lines
    .map { line in line.trimmedBlanks }
    .joined(separator: " ")
}
