import Ferry
import FerryCommandLine
import FerryPlatform
import FerryTableImport

/// Describes every error of the library: what happened, why, and what to do next.
extension ReplicaError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    switch self {
    case .offline(let why):
      CommandFailure(
        "the server could not be reached", why: why,
        next: "your changes are safe in the replica; run the command again when there is a network",
        status: .unreachable, code: "offline")
    case .busy(let why):
      CommandFailure(
        "the replica is busy", why: why,
        next: "try again in a moment; no recorded change is lost", status: .unreachable,
        code: "busy")
    case .refused(let problem): problem.commandFailure
    case .unexpectedAnswer(let status, let found):
      CommandFailure(
        "the answer (HTTP \(status)) is not from a Ferry server of a compatible version",
        why: found,
        next: isTransient
          ? "your changes are safe in the replica; try again later"
          : "check the address with `ferry status`, and set it with `ferry init --server URL`",
        status: isTransient ? .unreachable : .failed, code: "unexpected_answer")
    case .untrusted(let why):
      CommandFailure(
        "the server could not be trusted", why: why,
        next: "nothing was sent; your changes are safe in the replica. Correct the certificate, "
          + "--ca or this device's clock, then run the command again", status: .needsUser,
        code: "untrusted")
    case .redirected(let why):
      CommandFailure(
        "the server redirects to another address", why: why,
        next: "nothing was sent there; if that address is correct, run `ferry init --server URL "
          + "--space NAME` with it", code: "redirected")
    case .leftBehind(let why):
      CommandFailure(
        "changes of this replica do not reach the server", why: why,
        next:
          "your changes are safe in the replica; sync again. If it happens again, show `ferry log` "
          + "to the server's administrator", code: "left_behind")
    case .unfinished(let why):
      CommandFailure(
        "the server's list of changes does not end", why: why,
        next: "your changes are safe in the replica; run the command again", status: .unreachable,
        code: "unfinished")
    case .tooLarge(let why):
      CommandFailure(
        "the server's answer is too large for this device", why: why,
        next: "applied changes stay; ask the server's administrator to find the large record",
        code: "too_large")
    case .tokenMissing(let why):
      CommandFailure(
        "the replica's token cannot be used", why: why,
        next: "copy that file too (mode 0600), or give the token again: `ferry init --server URL "
          + "--space NAME --token TOKEN`; your changes are safe in the replica",
        status: .needsUser, code: "token_missing")
    case .badAddress(let why):
      CommandFailure(
        "the server's address cannot be used", why: why,
        next: "set it with `ferry init --server URL --space NAME`", status: .usage,
        code: "bad_address")
    case .notConfigured:
      CommandFailure(
        "this replica has no server yet", why: "it is not set up with `ferry init`",
        next: "run `ferry init --server URL --space NAME`", status: .usage, code: "not_configured")
    case .cannotTrack(let table, let why):
      CommandFailure(
        "table \(table) cannot be tracked", why: why,
        next: "correct that, and track it again",
        code: "cannot_track")
    case .cannotDrop(let table, let why):
      CommandFailure(
        "table \(table) cannot be dropped", why: why,
        next: "untrack that table first, and track it again after the migration",
        code: "cannot_drop")
    case .cannotOpen(let path, let why):
      CommandFailure(
        "\(path) cannot be used as a replica", why: why, next: "name another file with --replica",
        code: "cannot_open")
    case .cannotJoin(let space, let why):
      CommandFailure(
        "space \(space) cannot be joined", why: why, next: "`ferry spaces` lists the file's spaces",
        code: "cannot_join")
    case .cannotLeave(let why):
      CommandFailure(
        "the space cannot be left", why: why, next: "`ferry spaces` lists the file's spaces",
        code: "cannot_leave")
    case .unsent(let space, let count):
      CommandFailure(
        "space \(space) was not left",
        why: "its server does not have \(count.counted("operation")) of this device",
        next: "run `ferry sync` first; or add --discard to lose them", code: "unsent")
    case .notFound(let entry): entry.commandFailure
    case .cannotAnswer(let why, let advice):
      CommandFailure(
        "this answer is not possible", why: why, next: advice, code: "cannot_answer")
    case .cannotRetry(let entry, let why):
      CommandFailure(
        "entry \(entry) is not written again", why: why,
        next:
          "it stays in the quarantine; `ferry quarantine show \(entry)` lists its operations, and "
          + "`ferry quarantine discard \(entry)` deletes it", code: "cannot_retry")
    case .database(let message, let code)
    where code & 0xFF == 1 && message.utf8.starts(with: "ferry: ".utf8):
      CommandFailure(
        "this change cannot be recorded", why: String(message.utf8.dropFirst(7)) ?? message,
        next: "correct it and try again; nothing of the transaction was stored",
        code: "sqlite_1")
    case .database(let message, let code) where code & 0xFF == 23:
      CommandFailure(
        "Ferry does not allow this statement", why: message,
        next: "leave it out, or write it in another way; nothing of it was stored",
        code: "sqlite_23")
    case .database(let message, let code):
      CommandFailure(
        "SQLite reports an error", why: message,
        next: Self.next(afterSQLite: code & 0xFF), code: "sqlite_\(code & 0xFF)")
    case .invalidBatch(let why):
      CommandFailure(
        "the batch was not recorded", why: why, next: "see `ferry batch --help`",
        code: "invalid_batch")
    case .invalidName(let why):
      CommandFailure(
        "the name was not set", why: why, next: "choose another name", status: .usage,
        code: "invalid_name")
    case .cancelled:
      CommandFailure(
        "interrupted", why: "the command was cancelled",
        next: "run it again to continue", code: "cancelled")
    case .suspended, .closed:
      CommandFailure(
        "the replica's file is not in use any more", why: description,
        next: "run the command again", code: "stopped")
    }
  }
}

extension MissingEntry: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    let (why, next) =
      switch self {
      case .conflict:
        (
          "no conflict of this space has this number",
          "`ferry conflicts` lists them; --in SPACE names another space"
        )
      case .operation:
        (
          "its history has none with this identifier; confirmed operations stay for 14 days",
          "`ferry history` lists them"
        )
      case .quarantineEntry:
        (
          "the entry was written again or discarded, or another space has it",
          "`ferry quarantine list` lists the entries; --in SPACE names another space"
        )
      case .failedChange:
        (
          "the server has not rejected a change of it",
          "`ferry uploads` lists the rows that the server has not confirmed"
        )
      case .table:
        ("the file has no table of this name", "`.tables` in `ferry sql` lists the tables")
      case .space(let name):
        (
          "each command works on one of the file's spaces",
          "`ferry spaces` lists them; "
            + SuggestedCommand.line("ferry join", [name], or: "SPACE") + " joins this one"
        )
      case .leftSpace:
        ("another program has left it", "`ferry spaces` lists the file's spaces")
      }
    return CommandFailure(description, why: why, next: next, code: "not_found")
  }
}

extension ReplicaError {
  /// Returns a remedy for a primary result code of SQLite's (https://sqlite.org/rescode.html).
  private static func next(afterSQLite code: Int32) -> String {
    switch code {
    case 8:
      "make the file and its folder writable (the disk may be mounted read-only), then try again; "
        + "no recorded change is lost"
    case 10:
      "check whether the disk is full or failing, then try again; no recorded change is lost"
    case 13: "free some disk space, then try again; no recorded change is lost"
    default: "correct it and try again"
    }
  }
}

extension Problem: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    let next =
      switch code {
      case .unauthorized:
        "get a token from `ferryd token create`, then run `ferry init --server URL --space NAME "
          + "--token TOKEN`"
      case .notFound: "check the address that you gave to `ferry init --server URL`"
      case .forbidden: "ask for a token with another role or for this space"
      case .unknownSpace:
        "check --space, or create the space on the server: `ferryd space create NAME`"
      case .schemaConflict: schemaNext
      case .schemaLosses:
        "add the rules to the document, or `ferry schema apply FILE` with --merge or --replace"
      case .upgradeRequired: "install a newer Ferry; your changes are safe in the replica"
      case .storageQuota:
        "delete records that you do not need, or ask the server's administrator for a larger quota; "
          + "your changes are safe in the replica"
      case .deviceTaken, .cursorRequired:
        "sync again: the replica recovers by itself; your changes are safe in it"
      case .bufferFull, .writeQuota, .streamQuota, .rateLimited, .unavailable, .internalError:
        "your changes are safe in the replica; try again later"
      case .epochChanged, .cursorAhead, .historyLost, .cursorExpired, .lostAndExpired:
        "sync again: the replica pulls everything again; your changes are safe in it"
      default: "see `ferry log` and `ferry status`"
      }
    return CommandFailure(
      code.title.prefix(1).lowercasedASCII + code.title.dropFirst(), why: detail, next: next,
      status: status, code: code.rawValue)
  }
}

extension Problem {
  /// The exit status. Only a user can provide a token, so all commands ask for one in the same way.
  private var status: ExitStatus {
    switch code {
    case .unauthorized, .forbidden: .needsUser
    default: code.action == .retry ? .unreachable : .failed
    }
  }
}

extension Problem {
  /// A remedy if a schema cannot be put in force.
  private var schemaNext: String {
    if violations.isEmpty { return "correct the document, then `ferry schema apply FILE` again" }
    let repair = "repair the records or the document, then `ferry schema apply FILE` again"
    if violations.allSatisfy({ $0.holder != nil }) { return repair }
    return repair + "; with --keep-records types and required columns apply to later writes only"
  }
}

extension ImportError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    CommandFailure(
      "the file was not imported", why: reason, next: "correct it and try again",
      code: "import_failed")
  }
}
