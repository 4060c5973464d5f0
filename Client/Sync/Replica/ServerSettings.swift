import FerryNetworking
import FerryProtocol
import FerrySQLite

/// The device's identifier, the server and the token of a space: in `ferry_replica` and in the credential store.
struct ServerSettings {
  let path: String
  /// The beginning of the paths of the space's files beside the database.
  let place: String
  let credentials: any CredentialStore
  let spaces: FileSpaces
  let state: ReplicaState

  private var connection: SQLiteConnection { state.connection }
  private var isFirst: Bool { connection.namespace.number == 1 }

  func identity() throws -> (device: DeviceID, server: ServerAddress?) {
    let found = try connection.first(
      "SELECT device, server, space, authorities FROM ferry_replica"
    ) { row in
      (row.uniqueID(0), row.optionalText(1), row.optionalText(2), row.optionalText(3))
    }
    guard let found, let device = found.0 else {
      throw ReplicaError.cannotOpen(path: path, "its device identity is missing")
    }
    let space = found.2.flatMap { SpaceName($0) }
    let server = found.1.flatMap { url in
      space.map { ServerAddress(url: url, space: $0, certificateAuthorities: found.3) }
    }
    return (DeviceID(device), server)
  }

  /// Returns the server with the token from the credential store.
  ///
  /// - Throws: ``ReplicaError/tokenMissing(_:)`` if the token is no longer there.
  func access() throws -> ServerAccess? {
    guard let address = try identity().server else { return nil }
    guard try hasToken() else { return ServerAccess(address: address, token: nil) }
    guard let credential = try credentials.credential(of: place) else {
      throw ReplicaError.tokenMissing(
        "the token's file is missing: "
          + "was \(path) copied without \(FileCredentialStore.file(of: place))?")
    }
    guard credential.server == address.url, credential.space == address.space else {
      throw ReplicaError.tokenMissing(
        "the replica's server is space \(address.space) on \(address.url), but the stored "
          + "credential is \(credential), and Ferry sends it to no other server")
    }
    return ServerAccess(address: address, token: credential.token)
  }

  func hasToken() throws -> Bool {
    try connection.first("SELECT has_token FROM ferry_replica") { $0.int64(0) != 0 }
      ?? false
  }

  /// Returns warnings for the user about the replica's setup.
  func warnings() throws -> [String] {
    guard let address = try identity().server, try hasToken(),
      PlainConnection.leavesMachine(address.url)
    else { return [] }
    return [Self.exposure(of: address.url)]
  }

  /// Returns why the server accepts no operation with the token; `nil` if it may.
  func writesRefused() throws -> String? {
    try connection.first("SELECT writes_refused FROM ferry_replica") { $0.optionalText(0) } ?? nil
  }

  /// Stores why the server accepts no operation with the token; `nil` after it has accepted one.
  func setWritesRefused(_ reason: String?) throws {
    try connection.run(
      "UPDATE ferry_replica SET writes_refused = ?1 WHERE writes_refused IS NOT ?1", reason)
  }

  static func exposure(of url: String) -> String {
    "the token is sent to \(url) without encryption, and other machines on the way can read it; "
      + "connect with https://"
  }

  /// Sets the server and the stored token, as far as they change; see ``configure(_:token:)``.
  func prepare(_ address: ServerAddress, _ source: TokenSource) throws {
    let isKnown = try identity().server == address
    var token: String?
    switch source.kind {
    case .stored:
      if isKnown { return }
      // A token is for one server. Without one for this server, the sync says so.
      if try hasToken() { return try move(to: address) }
    case .fixed(let fixed): token = fixed
    case .refreshed: break
    }
    let credential = token.map {
      Credential(server: address.url, space: address.space, token: $0)
    }
    // An unreadable credential is replaced.
    if try isKnown && hasToken() == (token != nil) && (token == nil || isStored(credential)) {
      return
    }
    try configure(address, token: token, isFound: isKnown && isFound())
    // A watch of another process sees the entry: SQLite writes no page for equal values.
    if isKnown && !isFirst { try state.log("token", "the token of the space was replaced") }
  }

  /// Returns true if the server has had the space. It may have lost it since.
  func isFound() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_replica WHERE is_found <> 0 OR epoch IS NOT NULL")
  }

  private func isStored(_ credential: Credential?) -> Bool {
    guard let stored = try? credentials.credential(of: place) else { return false }
    return stored == credential
  }

  /// Sets another server, and leaves the stored token as it is.
  private func move(to address: ServerAddress) throws {
    try connection.transaction {
      try checkSpace(of: address)
      try connection.run(
        "UPDATE ferry_replica SET server = ?, space = ?, authorities = ?, is_found = 0",
        address.url,
        address.space.value, address.certificateAuthorities)
    }
  }

  private func checkSpace(of address: ServerAddress) throws {
    let others = try isFirst ? spaces.list().map(\.space) : []
    guard !others.contains(address.space.value) else {
      throw ReplicaError.cannotJoin(
        space: address.space.value, "this file has joined it already; leave it first")
    }
    guard let old = try identity().server, old.space != address.space,
      try state.load().epoch != nil
    else { return }
    throw ReplicaError.cannotOpen(
      path: path, "it belongs to space \(old.space); use another file for \(address.space)")
  }

  /// Sets the server. A replica synced with one space cannot move to another: the cursor and the
  /// pending operations belong to the first.
  ///
  /// - Parameters:
  ///   - token: goes to the credential store; `nil` removes the stored one.
  ///   - isFound: true if the server has the space.
  func configure(_ address: ServerAddress, token: String?, isFound: Bool = true) throws {
    try connection.transaction {
      try checkSpace(of: address)
      try connection.run(
        "UPDATE ferry_replica SET server = ?, space = ?, authorities = ?, has_token = ?, is_found = ?, "
          + "writes_refused = NULL",
        address.url, address.space.value, address.certificateAuthorities, token == nil ? 0 : 1,
        isFound ? 1 : 0)
      try credentials.store(
        token.map { Credential(server: address.url, space: address.space, token: $0) },
        of: place)
      for warning in try warnings() { try state.log("warning", warning) }
    }
  }
}
