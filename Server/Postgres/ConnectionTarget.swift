import CFerryPostgres
import FerryPlatform

/// The server to connect to, checked for syntax, with the defaults of every connection here.
struct ConnectionTarget: Sendable {
  /// A `postgres://` URL or libpq's `key=value` form. It may hold a password: never print it.
  let url: String
  /// The servers in the URL, in order; empty if it names none.
  let servers: [PostgresAddress]
  /// Which of several servers is used, in libpq's words.
  private let choice: String
  /// Options that override the URL's.
  private var overrides: [(String, String)] = []

  /// In libpq's order: the URL overrides earlier options. The seconds of `connect_timeout` are for
  /// each server in the URL.
  private static let before = [
    ("connect_timeout", "3"), ("fallback_application_name", "ferryd"),
    ("keepalives", "1"), ("keepalives_idle", "30"), ("keepalives_interval", "10"),
    ("keepalives_count", "3"), ("tcp_user_timeout", "30000"),
  ]
  private static let after = [("client_encoding", "UTF8")]

  /// Throws `invalidURL`.
  ///
  /// - Parameter prefersStandby: Whether, of several servers, a standby is used if there is one.
  ///   Otherwise the server that takes writes is used.
  init(_ url: String, prefersStandby: Bool = false) throws(PostgresError) {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(url, &message) else {
      defer { PQfreemem(message) }
      let reason = Self.redacted(oneLine(message), url: url)
      throw PostgresError(
        .invalidURL, "the database URL cannot be read: \(reason)",
        hint: "write postgres://user:password@host:5432/database, with %-escapes where needed")
    }
    defer { PQconninfoFree(options) }
    self.url = url
    choice = prefersStandby ? "prefer-standby" : "read-write"
    var lists: [String: [String]] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      let name = String(cString: keyword)
      if ["host", "hostaddr", "port"].contains(name), let value = option.pointee.val {
        lists[name] = String(cString: value).parts(at: ",")
          .map(String.init)
      }
      option += 1
    }
    servers = Self.servers(lists["host"] ?? [], lists["hostaddr"] ?? [], lists["port"] ?? [])
  }

  /// Joins libpq's parallel lists; one port is for all servers. The lists of a wrong URL may have
  /// different lengths: libpq reports this.
  private static func servers(
    _ hosts: [String], _ addresses: [String], _ ports: [String]
  ) -> [PostgresAddress] {
    (0..<max(hosts.count, addresses.count)).map { index in
      let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
      return PostgresAddress(
        host: index < hosts.count ? hosts[index] : "",
        address: index < addresses.count ? addresses[index] : "",
        port: port.isEmpty && !ports.isEmpty ? "5432" : port)
    }
  }

  /// A target for each server in the URL, with the URL's other options.
  var each: [ConnectionTarget] { servers.count > 1 ? servers.map(at) : [self] }

  /// Returns the same server as a connection has, and no other.
  func only(_ server: PostgresAddress) -> ConnectionTarget {
    var target = at(server)
    target.overrides.append(("target_session_attrs", "any"))
    return target
  }

  /// The same server, for a connection that reads the log of one database.
  var forReplication: ConnectionTarget {
    var target = self
    target.overrides.append(("replication", "database"))
    return target
  }

  private func at(_ server: PostgresAddress) -> ConnectionTarget {
    var target = self
    // libpq ignores an empty option.
    target.overrides = [
      ("host", server.host), ("hostaddr", server.address), ("port", server.port),
    ]
    return target
  }

  /// Lends the two parallel, NULL-terminated arrays of `PQconnectdbParams`.
  func withParameters<R>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> R?
  ) -> R? {
    let attributes = servers.count > 1 ? [("target_session_attrs", choice)] : []
    let pairs = Self.before + attributes + [("dbname", url)] + Self.after + overrides
    let keys = pairs.map { allocateCString($0.0) }
    let values = pairs.map { allocateCString($0.1) }
    defer { for string in keys + values { string.deallocate() } }
    return (keys + [nil]).withUnsafeBufferPointer { keys in
      (values + [nil]).withUnsafeBufferPointer { values in
        guard let keys = keys.baseAddress, let values = values.baseAddress else { return nil }
        return body(keys, values)
      }
    }
  }

  /// Removes quotations of the URL's part with the password from libpq's message.
  private static func redacted(_ reason: String, url: String) -> String {
    let secret = url.has("://") ? url[..<(url.last("@") ?? url.startIndex)] : url[...]
    let parts = reason.parts(at: "\"")
    return parts.enumerated().map { place, part in
      let isQuoted = place % 2 == 1 && part.utf8.count > 1
      return isQuoted && (secret.has(part) || part.has(secret)) ? "…" : part
    }.joined(separator: "\"")
  }

  private func allocateCString(_ string: String) -> UnsafePointer<CChar> {
    let source = string.utf8CString
    let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: source.count)
    _ = copy.initialize(from: source)
    guard let base = copy.baseAddress else { preconditionFailure("a C string has a byte") }
    return UnsafePointer(base)
  }

  /// Returns the reason why a connection could not be made, in one line.
  static func failure(_ handle: OpaquePointer?) -> PostgresError {
    guard let handle else {
      return PostgresError(.connectionFailed, "cannot connect to PostgreSQL: out of memory")
    }
    let reason = oneLine(PQerrorMessage(handle))
    var error = PostgresError(.connectionFailed, "cannot connect to PostgreSQL: \(reason)")
    if PQconnectionNeedsPassword(handle) != 0 {
      error.hint = "the server asks for a password and the URL has none"
    } else if PQconnectionUsedPassword(handle) != 0 {
      error.hint = "check user and password in the database URL"
    }
    return error
  }
}
