import CommandLineKit
import SyncServer

extension FerryServerError: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .twoStores, .badDatabaseURL, .noHome: usageFailure
    case .dataDirectory(let path, let reason):
      CommandFailure(
        "the data directory \(path) cannot be used", why: reason,
        next: "name another with --data DIR, or give this user the right to write to it",
        code: "data_directory")
    case .blobDirectory(let path, let reason):
      CommandFailure(
        "the directory for missions' content, \(path), cannot be used", why: reason,
        next: "name another with --blobs DIR, or give this user the right to write to it",
        code: "blob_directory")
    case .dataInUse(let path, let processID):
      CommandFailure(
        "the data directory \(path) is in use",
        why: "another ferryd serves it" + (processID.map { " (process \($0))" } ?? ""),
        next: "stop that one, or name another directory with --data DIR; several servers beside "
          + "each other need --database",
        code: "data_in_use")
    case .storeUnavailable(let location, let reason, let waited):
      CommandFailure(
        "the database cannot be reached (\(location))",
        why: "\(reason); waited \(waited.clockText)",
        next: "check that it runs and that --database is right; --start-wait waits longer",
        code: "database_unreachable")
    case .storeFailed(let location, let reason):
      CommandFailure(
        "the store cannot be used (\(location))", why: reason,
        next: "check that it is Ferry's and that this user may read and write it",
        code: "store_failed")
    case .needsTokens(let address):
      CommandFailure(
        "the server does not start on \(address)",
        why: "others than this machine can reach that address, and no token exists",
        next:
          "make one: `ferryd token create --space NAME --role writer`; or take those of an issuer "
          + "with --jwt-issuer; or listen on "
          + "127.0.0.1; or, where something else keeps strangers out, add --insecure",
        code: "needs_tokens")
    case .issuerKeys(let reason):
      CommandFailure(
        "the keys of the tokens' issuer cannot be used", why: reason,
        next: "check --jwks: it names a JSON Web Key Set with a key for RS256, ES256 or EdDSA",
        code: "issuer_keys")
    case .listen(let address, let error):
      CommandFailure(
        "the server cannot listen on \(address)", why: error.description,
        next: "stop what listens there, or choose another address with --listen ADDRESS:PORT",
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
    case .noHome:
      CommandFailure(
        "there is no place for the data", why: "HOME and XDG_STATE_HOME are not set",
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
    case .readOnly(let reason):
      CommandFailure(
        "the store takes no writes", why: reason,
        next: "name the database's primary server, or end its read-only mode",
        code: "database_read_only")
    case .failed(let reason):
      CommandFailure(
        "the store failed", why: reason,
        next: "check that it is Ferry's and that this user may read and write it",
        code: "store_failed")
    }
  }
}
