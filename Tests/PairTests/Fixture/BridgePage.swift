import Ferry
import FerryTestSupport
import Foundation

/// A page of a shell in a browser: the cookie, the page's address and the secret.
struct BridgePage: Sendable {
  private let origin: String
  private let root: String
  private let cookie: String
  private let secret: String
  /// The path before the files of the bundle.
  let base: String

  /// Opens a shell's one-time address.
  static func open(_ address: String) async throws -> BridgePage {
    let origin = String(address.prefix(while: { $0 != "-" }).dropLast())
    let opened = try await Wire.send(.get, address)
    guard let set = opened.headers["Set-Cookie"], let path = set.firstMatch(of: /Path=([^;]+)/)
    else { throw TestSupportError("\(address) opens no page: \(opened.text)") }
    return try await BridgePage(origin, String(path.1), String(set.prefix { $0 != ";" }))
  }

  /// Loads the page again: another load of the bundle.
  func loadAgain() async throws -> BridgePage { try await BridgePage(origin, root, cookie) }

  private init(_ origin: String, _ root: String, _ cookie: String) async throws {
    (self.origin, self.root, self.cookie) = (origin, root, cookie)
    let page = try await Wire.send(.get, origin + root, headers: ["Cookie": cookie])
    guard let secret = page.text.firstMatch(of: /name="ferry-page" content="([^"]+)"/),
      let base = page.text.firstMatch(of: /<script src="([^"]+)-\/ferry\.js">/)
    else { throw TestSupportError("the shell shows no page: \(page.text)") }
    (self.secret, self.base) = (String(secret.1), String(base.1))
  }

  /// Requests a file of the bundle by name, or content by path.
  func get(_ name: String, range: String? = nil) async throws -> Wire.Answer {
    var headers: TransportHeaders = ["Cookie": cookie]
    headers["Range"] = range
    return try await Wire.send(
      .get, origin + (name.hasPrefix("/") ? name : base + name), headers: headers)
  }

  /// Sends a message as `ferry.js` does.
  @discardableResult
  func post(_ name: String, _ body: Any = [String: Any]()) async throws -> Wire.Answer {
    try await Wire.send(
      .post, origin + base + "-/\(name)",
      headers: ["Cookie": cookie, "Origin": origin, "Ferry-Page": secret],
      body: Array(try JSONSerialization.data(withJSONObject: body)))
  }

  /// Calls a service, and returns the result.
  func call(_ service: String, _ argument: Any = NSNull()) async throws -> Any {
    let answer = try await post("call", ["service": service, "argument": argument])
    guard let value = answer.json["value"] else {
      throw TestSupportError("\(service) has no result: \(answer.text)")
    }
    return value
  }

  /// Calls a service whose result is a list of objects.
  func list(_ service: String, _ argument: Any = NSNull()) async throws -> [JSONLine] {
    let value = try await call(service, argument)
    guard let list = value as? [[String: Any]] else {
      throw TestSupportError("the result of \(service) is no list: \(value)")
    }
    return list.map { JSONLine(members: $0) }
  }

  /// Calls a service whose result is an object.
  func object(_ service: String, _ argument: Any = NSNull()) async throws -> JSONLine {
    let value = try await call(service, argument)
    guard let object = value as? [String: Any] else {
      throw TestSupportError("the result of \(service) is no object: \(value)")
    }
    return JSONLine(members: object)
  }

  /// Calls a service that fails, and returns the code; `nil` if it does not fail.
  func code(_ service: String, _ argument: Any = NSNull()) async throws -> String? {
    let answer = try await post("call", ["service": service, "argument": argument])
    return (answer.json["error"] as? [String: Any])?["code"] as? String
  }
}
