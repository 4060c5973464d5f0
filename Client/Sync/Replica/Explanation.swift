import FerryPersistence

/// An error in the words of each reader: an app's user, the user of a command, and a developer.
package struct Explanation: Sendable {
  /// The condition under which the same call succeeds.
  package enum Remedy: Sendable {
    /// The same call may succeed later without any change.
    case later
    /// The user provides a token, or restores trust in the server.
    case credentials
    /// The caller corrects an option or an argument.
    case usage
    /// Another change is necessary, named by the next step.
    case correction
  }

  /// A stable `snake_case` name for scripts and pages.
  package let code: String
  /// The event, in a few words without a full stop.
  package let event: String
  /// The message of SQLite, of the server or of the network.
  package let reason: String
  /// The next step for the user of a command.
  package let next: String
  /// The event and the next step for an app's user, without words of SQL, of commands or of the
  /// protocol.
  package let user: (event: String, next: String)
  package let remedy: Remedy
  /// The detail for developers, in one line.
  package let description: String

  /// Creates a row.
  ///
  /// - Parameter description: `nil` for the reason alone.
  init(
    _ code: String, _ event: String, _ reason: String, next: String,
    user: (event: String, next: String),
    _ remedy: Remedy = .correction, description: String? = nil
  ) {
    self.code = code
    self.event = event
    self.reason = reason
    self.next = next
    self.user = user
    self.remedy = remedy
    self.description = description ?? reason
  }

  /// Creates a row for a reason that is incomplete without the event.
  init(
    _ code: String, event: String, because reason: String, next: String,
    user: (event: String, next: String)
  ) {
    self.init(code, event, reason, next: next, user: user, description: "\(event): \(reason)")
  }
}

extension Explanation {
  /// Explains an error of SQLite's (https://sqlite.org/rescode.html).
  ///
  /// - Parameter code: the extended result code.
  init(sqlite message: String, code: Int32) {
    let (error, primary) = (DatabaseError(code: code), code & 0xFF)
    let isRefused = primary == 1 && message.utf8.starts(with: "ferry: ".utf8)
    let (event, reason, next) =
      switch primary {
      case 1 where isRefused:
        (
          "this change cannot be recorded", String(message.utf8.dropFirst(7)) ?? message,
          "correct it and try again; nothing of the transaction was stored"
        )
      case 8:
        (
          Self.sqliteEvent, message,
          "make the file and its folder writable (the disk may be mounted read-only), then try "
            + "again; no recorded change is lost"
        )
      case 10:
        (
          Self.sqliteEvent, message,
          "check whether the disk is full or failing, then try again; no recorded change is lost"
        )
      case 13:
        (
          Self.sqliteEvent, message,
          "free some disk space, then try again; no recorded change is lost"
        )
      case 23:
        (
          "Ferry does not allow this statement", message,
          "leave it out, or write it in another way; nothing of it was stored"
        )
      default: (Self.sqliteEvent, message, "correct it and try again")
      }
    self.init(
      "sqlite_\(primary)", event, reason, next: next,
      user: (error.errorDescription ?? "", error.recoverySuggestion ?? ""),
      description: message)
  }

  private static let sqliteEvent = "SQLite reports an error"
}
