import FerryNetworking
import FerryPlatform
import FerryProtocol
import Foundation

/// A description and a remedy for the app's user, and the detail for its developers.
///
/// | property | reader | contents |
/// |---|---|---|
/// | `errorDescription` | user | the event, without words of SQL or of the protocol |
/// | `recoverySuggestion` | user | the next step |
/// | `failureReason`, `description` | developer | the message of SQLite, of the server or of the network |
///
/// ```swift
/// catch let error as LocalizedError {
///   show(error.errorDescription, hint: error.recoverySuggestion)
///   print(error.failureReason ?? "")
/// }
/// ```
extension ReplicaError: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { explanation.user.event }
  public var failureReason: String? { description }
  public var recoverySuggestion: String? { explanation.user.next }
  public var description: String { explanation.description }
}

extension ReplicaError {
  /// The error in words for each reader: the table of all errors.
  package var explanation: Explanation {
    switch self {
    case .offline(let why):
      Explanation(
        "offline", "the server could not be reached", why,
        next: "your changes are safe in the replica; run the command again when there is a network",
        user: ("The server cannot be reached.", Self.syncLater), .later)
    case .busy(let why):
      Explanation(
        "busy", "the replica is busy", why,
        next: "try again in a moment; no recorded change is lost",
        user: ("Another program is using the app's data.", Self.syncLater), .later)
    case .refused(let problem): problem.explanation
    case .unexpectedAnswer(let status, let found):
      Self.unexpected(status: status, found)
    case .untrusted(let why):
      Explanation(
        "untrusted", "the server could not be trusted", why,
        next: "nothing was sent; your changes are safe in the replica. Correct the certificate, "
          + "--ca or this device's clock, then run the command again",
        user: (
          "There is no secure connection to the server.",
          "Check the clock of this device, or use another network."
        ), .credentials)
    case .redirected(let why):
      Explanation(
        "redirected", "the server redirects to another address", why,
        next: "nothing was sent there; if that address is correct, run `ferry init --server URL "
          + "--space NAME` with it", user: Self.otherServer)
    case .leftBehind(let why):
      Explanation(
        "left_behind", "changes of this replica do not reach the server", why,
        next: "your changes are safe in the replica; sync again. If it happens again, show `ferry "
          + "log` to the server's administrator",
        user: (
          "Your changes do not reach the server.",
          "Sync again. If that fails as well, contact the app's support. Your changes are kept."
        ))
    case .unfinished(let why):
      Explanation(
        "unfinished", "the server's list of changes does not end", why,
        next: "your changes are safe in the replica; run the command again",
        user: (
          "Not all changes have arrived yet.",
          "Sync again: the next sync continues. Your changes are safe on this device."
        ), .later)
    case .tooLarge(let why):
      Explanation(
        "too_large", "the server's answer is too large for this device", why,
        next: "applied changes stay; ask the server's administrator to find the large record",
        user: (
          "The server's answer is too large for this device.",
          "Contact the app's support: the server's answer is too large for this device."
        ))
    case .tokenMissing(let why):
      Explanation(
        "token_missing", "the replica's token cannot be used", why,
        next: "copy that file too (mode 0600), or give the token again: `ferry init --server URL "
          + "--space NAME --token TOKEN`; your changes are safe in the replica",
        user: ("You are not signed in.", "Sign in again."), .credentials)
    case .badAddress(let why):
      Explanation(
        "bad_address", "the server's address cannot be used", why,
        next: "set it with `ferry init --server URL --space NAME`",
        user: (
          "The server's address is not valid.",
          "Write the address as https://HOST or http://HOST:PORT."
        ), .usage)
    case .notConfigured:
      Explanation(
        "not_configured", "this replica has no server yet", "it is not set up with `ferry init`",
        next: "run `ferry init --server URL --space NAME`",
        user: ("No server has been chosen yet.", "Choose a server and a space."), .usage,
        description: "this replica has no server yet")
    case .cannotTrack(let table, let why):
      Explanation(
        "cannot_track", event: "table \(table) cannot be tracked", because: why,
        next: "correct that, and track it again", user: Self.unchangeable)
    case .cannotDrop(let table, let why):
      Explanation(
        "cannot_drop", event: "table \(table) cannot be dropped", because: why,
        next: "untrack that table first, and track it again after the migration",
        user: Self.unchangeable)
    case .cannotOpen(let path, let why):
      Explanation(
        "cannot_open", "\(path) cannot be used as a replica", why,
        next: "name another file with --replica",
        user: (
          "The app's data cannot be opened.",
          "Install the newest version of the app, or contact its support."
        ),
        description: "\(path) cannot be opened: \(why)")
    case .cannotJoin(let space, let why):
      Explanation(
        "cannot_join", event: "space \(space) cannot be joined", because: why,
        next: "`ferry spaces` lists the file's spaces",
        user: ("\(space) cannot be added to this app.", Self.unchanged))
    case .cannotLeave(let why):
      Explanation(
        "cannot_leave", "the space cannot be left", why,
        next: "`ferry spaces` lists the file's spaces",
        user: ("This cannot be removed from the app.", Self.unchanged))
    case .unsent(let space, let count):
      Explanation(
        "unsent", "space \(space) was not left",
        "its server does not have \(count.counted("operation")) of this device",
        next: "run `ferry sync` first; or add --discard to lose them",
        user: (
          "\(count.counted("change")) of \(space) "
            + (count == 1 ? "has not been sent yet." : "have not been sent yet."),
          "Sync first, or discard these changes."
        ),
        description:
          "space \(space) has \(count.counted("operation")) that its server does not have")
    case .notFound(let entry): entry.explanation
    case .cannotAnswer(let why, let advice):
      Explanation(
        "cannot_answer", "this answer is not possible", why, next: advice,
        user: (
          "This answer is not possible.", "Choose another answer. Nothing was changed."
        ),
        description: "\(why): \(advice)")
    case .cannotRetry(let entry, let why):
      Explanation(
        "cannot_retry", "entry \(entry) is not written again", why,
        next: "it stays in the quarantine; `ferry quarantine show \(entry)` lists its operations, "
          + "and `ferry quarantine discard \(entry)` deletes it",
        user: (
          "This change cannot be sent again.", "Discard this change, and make it again."
        ),
        description: "entry \(entry) of the quarantine cannot be written again: \(why)")
    case .database(let message, let code): Explanation(sqlite: message, code: code)
    case .invalidBatch(let why):
      Explanation(
        "invalid_batch", "the batch was not recorded", why, next: "see `ferry batch --help`",
        user: Self.unchangeable)
    case .invalidName(let why):
      Explanation(
        "invalid_name", "the name was not set", why, next: "choose another name",
        user: (
          "This name cannot be used for the device.", "Choose another name for the device."
        ),
        .usage)
    case .cancelled:
      Explanation(
        "cancelled", "interrupted", "the command was cancelled", next: "run it again to continue",
        user: ("The work was cancelled.", Self.syncLater), description: "cancelled")
    case .suspended:
      Explanation(
        "suspended", Self.unused, "the replica is suspended until the program resumes it",
        next: "run the command again",
        user: (
          "The app's data is not in use at the moment.",
          "Try again when the app is active. Your changes are safe."
        ), .later)
    case .closed:
      Explanation(
        "closed", Self.unused, "the replica was closed; open its file again",
        next: "run the command again",
        user: (
          "The app's data is not in use at the moment.",
          "Start the app again. Your changes are safe."
        ))
    }
  }

  private static func unexpected(status: Int, _ found: String) -> Explanation {
    let isTransient = RetryPolicy.isTransient(status: status)
    return Explanation(
      "unexpected_answer",
      "the answer (HTTP \(status)) is not from a Ferry server of a compatible version", found,
      next: isTransient
        ? "your changes are safe in the replica; try again later"
        : "check the address with `ferry status`, and set it with `ferry init --server URL`",
      user: otherServer, isTransient ? .later : .correction,
      description: "the server answered \(status): \(found)")
  }

  private static let syncLater = "Sync again later. Your changes are safe on this device."
  private static let unchanged = "Contact the app's support. Nothing was changed."
  private static let unchangeable = ("The app cannot change its data in this way.", unchanged)
  private static let unused = "the replica's file is not in use any more"
  private static let otherServer = (
    "Another server has answered, or a network's sign-in page.",
    "Check the server's address, and sign in to the network if it asks for that."
  )
}
