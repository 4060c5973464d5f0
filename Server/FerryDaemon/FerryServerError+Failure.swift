import FerryCommandLine
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
