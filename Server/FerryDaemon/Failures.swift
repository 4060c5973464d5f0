import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

extension FerryServerError: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .twoStores, .badDatabaseURL, .addressAlone, .noHome: usageFailure
    case .dataDirectory(let path, let reason):
      CommandFailure(
        "the data directory \(path) cannot be used", why: reason,
        next: "name another with --data DIR, or give this user write permission",
        code: "data_directory")
    case .blobDirectory(let path, let reason):
      CommandFailure(
        "the directory for missions' content, \(path), cannot be used", why: reason,
        next: "name another with --blobs DIR, or give this user write permission",
        code: "blob_directory")
    case .dataInUse(let path, let processID):
      CommandFailure(
        "the data directory \(path) is in use",
        why: "another ferryd serves it" + (processID.map { " (process \($0))" } ?? ""),
        next: "stop that server, or name another directory with --data DIR; parallel servers need "
          + "--database",
        code: "data_in_use")
    case .storeUnavailable(let location, let reason, let waited):
      CommandFailure(
        "the database cannot be reached (\(location))",
        why: "\(reason); waited \(waited.clockText)",
        next:
          "check that the database runs and that --database is correct; --start-wait waits longer",
        code: "database_unreachable")
    case .storeFailed(let location, let reason):
      CommandFailure(
        "the store cannot be used (\(location))", why: reason,
        next: "check that it is a store of Ferry and that this user may read and write it",
        code: "store_failed")
    case .needsTokens(let address):
      CommandFailure(
        "the server does not start on \(address)",
        why: "other machines can reach that address, and no token exists",
        next:
          "create a token: `ferryd token create --space NAME --role writer`; or accept an issuer's "
          + "tokens with --jwt-issuer; or listen on 127.0.0.1; or, on a protected network, add "
          + "--insecure",
        code: "needs_tokens")
    case .proxyNeedsTokens:
      CommandFailure(
        "the server does not start behind a proxy",
        why: "--trusted-proxy is given, other machines can reach the proxy, and no token exists",
        next:
          "create a token: `ferryd token create --space NAME --role writer`; or accept an issuer's "
          + "tokens with --jwt-issuer; or leave out --trusted-proxy",
        code: "needs_tokens")
    case .issuerKeys(let reason):
      CommandFailure(
        "the keys of the tokens' issuer cannot be used", why: reason,
        next: "check --jwks: the JSON Web Key Set must have a key for RS256, ES256 or EdDSA",
        code: "issuer_keys")
    case .listen(let address, let error):
      CommandFailure(
        "the server cannot listen on \(address)", why: error.description,
        next: "stop the process that listens there, or choose another address with --listen",
        code: "cannot_listen")
    }
  }

  private var usageFailure: CommandFailure {
    switch self {
    case .twoStores:
      CommandFailure(
        "both a database and a data directory are named",
        why: "a server keeps its data in one of them",
        next: "leave out --database or --data", status: .usage,
        code: "two_stores")
    case .addressAlone:
      CommandFailure(
        "--listen-url, --read-database or --worker-database is given without --database",
        why: "they are further addresses of the database that --database names",
        next: "add --database, or leave them out", status: .usage, code: "address_alone")
    case .noHome:
      CommandFailure(
        "there is no directory for the data", why: "HOME and XDG_STATE_HOME are not set",
        next: "name a directory with --data DIR", status: .usage, code: "no_data_directory")
    default:
      CommandFailure(
        "the database's URL cannot be used",
        why: "--database (FERRY_DATABASE) takes a PostgreSQL URL",
        next: "write postgres://user:password@host:5432/name, or leave it out for the embedded "
          + "store",
        status: .usage, code: "bad_database_url")
    }
  }
}

extension StoreError: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .unavailable(let reason):
      CommandFailure(
        "the store cannot be reached", why: reason, next: "try again in a moment",
        code: "database_unreachable")
    case .busy(let reason):
      CommandFailure(
        "the store is busy", why: reason, next: "try again in a moment", code: "database_busy")
    case .needsMemory:
      CommandFailure(
        "the store needs more memory", why: "the packet touches very large records",
        next: "try again in a moment", code: "database_busy")
    case .readOnly(let reason):
      CommandFailure(
        "the store is read-only", why: reason,
        next: "name the database's primary server, or end its read-only mode",
        code: "database_read_only")
    case .failed(let reason):
      CommandFailure(
        "the store failed", why: reason,
        next: "check that it is a store of Ferry and that this user may read and write it",
        code: "store_failed")
    }
  }
}

extension DistributionFault: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .noExtension:
      failure(
        "the database has no extension citus",
        next: "install Citus on all servers, run CREATE EXTENSION citus in this database on each, "
          + "and add the workers with citus_add_node", code: "no_citus")
    case .noWorkers:
      failure(
        "the coordinator has no worker that takes rows",
        next: "add each worker with SELECT citus_add_node('HOST', PORT)", code: "no_workers")
    case .notCoordinator:
      failure(
        "the database is on a worker", next: "name the coordinator's with --database",
        code: "not_coordinator")
    case .inUse(let count):
      failure(
        "ferryd uses the database at this moment, by \(count.counted("connection"))",
        next: "stop all servers and commands of this database; start them again afterwards",
        code: "database_in_use")
    }
  }

  /// The failure for the embedded store.
  static var embedded: CommandFailure {
    CommandFailure(
      "the store is not distributed", why: "the embedded store is one file",
      next: "name the coordinator of Citus with --database URL", status: .usage,
      code: "no_database")
  }

  private func failure(_ why: String, next: String, code: String) -> CommandFailure {
    CommandFailure("the store is not distributed", why: why, next: next, code: code)
  }
}

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
      case .cursorExpired, .lostAndExpired, .historyLost, .epochChanged, .cursorAhead:
        "copy the records again, and continue with the cursor of the last page; or leave out "
          + "--since to begin with the oldest transaction kept"
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
