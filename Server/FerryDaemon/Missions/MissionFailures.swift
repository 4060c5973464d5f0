import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

extension MissionFailure: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .refused(let problem): problem.commandFailure
    case .store(let error): error.commandFailure
    case .content(let error): error.commandFailure
    case .key(let error): error.commandFailure
    }
  }
}

extension Problem: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    let next =
      switch code {
      case .unauthorized, .forbidden:
        "create a token with `ferryd token create --role admin`, and give it with "
          + "--token-file or FERRY_TOKEN"
      case .unknownSpace: "check --space, or make it with `ferryd space create NAME`"
      case .notFound: "check the name, --space and --server"
      case .missionConflict:
        "correct the conflict (`--new-key` is ?newKey=true); `ferryd mission list` lists the "
          + "published missions"
      case .contentMismatch: "publish again: Ferry sends only the missing parts"
      case .uploadQuota:
        "wait until other uploads are finished or expire, or ask for a larger quota"
      case .unavailable, .internalError: "try again in a moment; see the server's log"
      default: "correct the mission, then publish again"
      }
    return CommandFailure(
      code.title.prefix(1).lowercasedASCII + code.title.dropFirst(), why: detail, next: next,
      status: status, code: code.rawValue)
  }
}

extension BlobError: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .diskFull:
      CommandFailure(
        "the content was not kept", why: description,
        next: "free disk space, also with `ferryd mission collect`, and publish again",
        code: "disk_full")
    case .changed:
      CommandFailure(
        "the mission was not published", why: description,
        next: "publish again when no program writes to the files", code: "file_changed")
    case .cancelled:
      CommandFailure(
        "interrupted", why: "the command was cancelled",
        next: "run it again; no part of it is visible yet", code: "cancelled")
    case .remote, .missing:
      CommandFailure(
        "the missions' content cannot be read or written", why: description,
        next: "check --content and its key, and try again: nothing is lost",
        status: .unreachable, code: "content_unavailable")
    case .busy, .notAFile, .mismatch, .wrongOffset, .overQuota, .tooManyUploads,
      .system:
      CommandFailure(
        "the files cannot be read or stored", why: description,
        next: "check the path, and that this user may read and write it", code: "file_failed")
    }
  }
}

extension SigningKeyError: CommandFailureConvertible {
  private var isOther: Bool {
    switch self {
    case .missing, .other: true
    case .notAKey, .notPrivate, .file: false
    }
  }

  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    let next =
      switch self {
      case .notAKey: "name another file with --mission-key, or move this one away"
      case .notPrivate(let path): "chmod 600 \(path)"
      case .file: "name a file that this user may read and make with --mission-key"
      case .missing(let path, _), .other(let path, _):
        "restore that key's file to \(path), or name it with --mission-key. If it is lost, run "
          + "`ferryd mission publish --new-key`, and on every device `ferry mission trust KEY` "
          + "with the key that `ferryd mission key` prints"
      }
    return CommandFailure(
      isOther
        ? "devices do not trust the key that signs missions"
        : "there is no key to sign missions with", why: description, next: next, code: "signing_key"
    )
  }
}

extension Problem {
  /// The exit status of a command to a server: only the user can provide a missing token.
  private var status: ExitStatus {
    switch code {
    case .unauthorized, .forbidden: .needsUser
    default: code.action == .retry ? .unreachable : .failed
    }
  }
}
