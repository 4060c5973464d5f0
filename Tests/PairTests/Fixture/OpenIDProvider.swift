import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// A real OpenID Connect provider: Glewlwyd, with a separate port and database.
///
/// It has the user `ada`, whose property `ferry` has two values, and the client `app`, whose
/// property `ferry` has one. Access tokens have the property as a text, ID tokens as a list.
final class OpenIDProvider: Sendable {
  /// A key that signs tokens, in PEM.
  struct Key: Decodable {
    let `private`: String
    let `public`: String

    enum Algorithm: String, CaseIterable {
      case rs256 = "rsa"
      /// One coordinate begins with a zero byte.
      case es256 = "p256"
    }

    static func make(_ algorithm: Algorithm) async throws -> Key {
      let script = Project.file("Tests/PairTests/Resources/make_signing_key.py").path
      let made = try await ChildProcess.run(
        URL(filePath: "/usr/bin/python3"), [script, algorithm.rawValue])
      try #require(made.status == .exited(0), "\(made.error)")
      return try JSONDecoder().decode(Key.self, from: Data(made.output.utf8))
    }
  }

  /// An issuer of tokens, from the provider's discovery document.
  struct Issuer: Decodable {
    let issuer: String
    let jwksUri: String
    var name: String { URL(string: issuer)?.lastPathComponent ?? "" }
  }

  static let program = URL(filePath: "/usr/bin/glewlwyd")
  private static let schema = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
  static let resource = "https://ferry.example/"
  static let otherResource = "https://other.example/"
  static let redirection = "http://127.0.0.1/signed-in"

  /// Debian packages it: there it has to be installed. Other systems may lack the package.
  static var isExpected: Bool {
    let release = try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)
    return FileManager.default.isExecutableFile(atPath: program.path)
      || release?.split(separator: "\n").contains("ID=debian") == true
  }

  let port: UInt16
  private let directory: TemporaryDirectory
  private let process = Mutex(ChildProcess?.none)
  private let sessions = Mutex([String: [String: String]]())

  init() async throws {
    guard FileManager.default.isExecutableFile(atPath: Self.program.path) else {
      throw TestSupportError(
        "glewlwyd is not installed: run `Scripts/install-dependencies.sh test`")
    }
    directory = try TemporaryDirectory(prefix: "ferry-openid")
    port = try FreePort.next()
    let database = directory.file("database").path
    let made = try await ChildProcess.run(
      URL(filePath: "/usr/bin/sqlite3"), ["-bail", database],
      input: "BEGIN;\n" + String(contentsOfFile: Self.schema, encoding: .utf8) + "\nCOMMIT;\n")
    try #require(made.status == .exited(0), "\(made.error)")
    try Data(Self.configuration(port: port, database: database).utf8)
      .write(to: directory.file("glewlwyd.conf"))
    try await start()
    try await prepare()
  }

  /// Starts it, again after ``stop()``.
  func start() async throws {
    let child = try ChildProcess(
      Self.program, ["--config-file=\(directory.file("glewlwyd.conf").path)"])
    process.withLock { $0 = child }
    try await eventually("the provider to start", from: child) {
      (try? await ServiceSocket.exchange(port, "GET", "/")) != nil
    }
  }

  /// Ends it, and waits until it has ended.
  func stop() async throws {
    let child = process.withLock { process in
      defer { process = nil }
      return process
    }
    child?.send(SIGTERM)
    _ = try await child?.exitStatus()
  }

  // MARK: Issuers

  /// Adds an issuer that signs with `key`.
  func addIssuer(_ name: String, _ key: Key) async throws -> Issuer {
    try await administer("POST", "mod/plugin", Self.issuer(name, port: port, key))
    let found = try await call("GET", "\(name)/.well-known/openid-configuration")
    return try Self.decode(found)
  }

  /// Replaces the key of an issuer: the key set has the new one only.
  func rotate(_ issuer: Issuer, to key: Key) async throws {
    let path = "mod/plugin/\(issuer.name)"
    try await administer("PUT", path, Self.issuer(issuer.name, port: port, key))
    try await administer("PUT", "\(path)/reset")
  }

  // MARK: Requests

  /// Sends a request to the interface; fails unless the response has the wanted status.
  func call(
    _ method: String, _ path: String, headers: [String: String] = [:], body: [UInt8] = [],
    status: Int = 200
  ) async throws -> ServiceSocket.Answer {
    let answer = try await ServiceSocket.exchange(
      port, method, "/api/\(path)", headers: headers, body: body)
    guard answer.status == status else {
      throw TestSupportError("glewlwyd: \(method) \(path): \(answer.status) \(answer.text)")
    }
    return answer
  }

  /// Signs a user in, once. Returns the session's cookie.
  func session(_ user: String) async throws -> [String: String] {
    if let known = sessions.withLock({ $0[user] }) { return known }
    let answer = try await call(
      "POST", "auth", body: Self.json(["username": user, "password": "password"]))
    let cookie = try #require(answer.headers["set-cookie"]?.split(separator: ";").first)
    let session = ["Cookie": String(cookie)]
    sessions.withLock { $0[user] = session }
    return session
  }

  private func administer(
    _ method: String, _ path: String, _ body: [UInt8] = []
  ) async throws {
    _ = try await call(method, path, headers: session("admin"), body: body)
  }

  static func decode<Value: Decodable>(_ answer: ServiceSocket.Answer) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(Value.self, from: Data(answer.body))
  }

  static func json(_ object: [String: Any]) throws -> [UInt8] {
    Array(try JSONSerialization.data(withJSONObject: object))
  }
}

// MARK: Settings

extension OpenIDProvider {
  private func prepare() async throws {
    try await addProperty("ferry", to: "user", isList: true)
    try await addProperty("ferry", to: "client", isList: false)
    for scope in ["sync", "other"] {
      try await administer(
        "POST", "scope",
        Self.json([
          "name": scope, "display_name": scope, "password_required": true,
          "scheme": [String: Any](),
        ]))
    }
    try await addUser("ada", grants: ["list-7=writer", "note*=reader"])
    try await administer(
      "POST", "client",
      Self.json([
        "client_id": "app", "name": "app", "password": "secret", "confidential": true,
        "enabled": true, "scope": ["sync", "other"], "redirect_uri": [Self.redirection],
        "authorization_type": ["code", "client_credentials", "refresh_token"],
        "token_endpoint_auth_method": ["client_secret_basic"], "ferry": "*=admin",
      ]))
  }

  private func addProperty(_ name: String, to kind: String, isList: Bool) async throws {
    let path = "mod/\(kind)/database"
    let found = try await call("GET", path, headers: session("admin"))
    let module = try JSONSerialization.jsonObject(with: Data(found.body))
    var settings = try #require(module as? [String: Any])
    var parameters = try #require(settings["parameters"] as? [String: Any])
    var formats = try #require(parameters["data-format"] as? [String: Any])
    formats[name] = ["multiple": isList, "read": true, "write": true]
    parameters["data-format"] = formats
    settings["parameters"] = parameters
    try await administer("PUT", path, Self.json(settings))
    try await administer("PUT", "\(path)/reset")
  }

  /// Adds a user with the password `password`.
  func addUser(_ name: String, grants: [String]) async throws {
    var user: [String: Any] = [
      "username": name, "name": name, "password": "password", "enabled": true,
      "scope": ["openid", "sync", "other"],
    ]
    if !grants.isEmpty { user["ferry"] = grants }
    try await administer("POST", "user", Self.json(user))
  }

  private static func issuer(_ name: String, port: UInt16, _ key: Key) throws -> [UInt8] {
    let isRSA = key.private.contains("RSA PRIVATE KEY")
    var parameters: [String: Any] = [
      "iss": "http://127.0.0.1:\(port)/api/\(name)", "jwt-type": isRSA ? "rsa" : "ecdsa",
      "jwt-key-size": "256", "key": key.private, "cert": key.public, "jwks-show": true,
      "access-token-duration": 3_600, "refresh-token-duration": 3_600, "code-duration": 600,
      "refresh-token-rolling": false, "allow-non-oidc": true, "resource-allowed": true,
      "resource-scope": ["sync": [resource], "other": [otherResource]],
      "additional-parameters": [
        ["user-parameter": "ferry", "token-parameter": "ferry"],
        ["client-parameter": "ferry", "token-parameter": "ferry"],
      ],
      "claims": [
        ["name": "ferry", "user-property": "ferry", "type": "string", "mandatory": true]
      ],
    ]
    for (flow, isEnabled) in [
      ("code", true), ("token", false), ("id-token", true), ("password", false),
      ("client", true), ("refresh", true), ("device", false),
    ] {
      parameters["auth-type-\(flow)-enabled"] = isEnabled
    }
    return try json([
      "module": "oidc", "name": name, "display_name": name, "parameters": parameters,
    ])
  }

  private static func configuration(port: UInt16, database: String) -> String {
    """
    port=\(port)
    bind_address="127.0.0.1"
    external_url="http://127.0.0.1:\(port)"
    login_url="login.html"
    api_prefix="api"
    log_mode="console"
    log_level="INFO"
    cookie_secure=0
    admin_scope="g_admin"
    profile_scope="g_profile"
    user_module_path="/usr/lib/glewlwyd/user"
    client_module_path="/usr/lib/glewlwyd/client"
    user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
    plugin_module_path="/usr/lib/glewlwyd/plugin"
    hash_algorithm="SHA256"
    database = { type="sqlite3" path="\(database)" }

    """
  }
}
