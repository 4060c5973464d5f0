import FerryTestSupport
import Foundation
import Synchronization

@testable import FerryShell

/// A shell over a folder, and a client that acts as a browser.
final class ShellVisitor: Sendable {
  let folder: TemporaryDirectory
  let shell: Shell
  let client: RawClient
  /// The path of the first page, the page's number and the secrets, as the browser has them.
  let root: String
  let base: String
  let cookie: String
  let secret: String
  private let events: EventList

  private final class EventList: Sendable {
    let all = Mutex<[ShellEvent]>([])
  }

  /// The failures in the shell's log.
  func failures() -> [String] {
    events.all.withLock { $0 }.compactMap { event in
      if case .failed(_, let failure, _) = event { "\(failure)" } else { nil }
    }
  }

  /// How many versions the shell's log has as confirmed.
  var confirmations: Int {
    events.all.withLock { $0 }.count { if case .confirmed = $0 { true } else { false } }
  }

  static let document = "<!doctype html><html><head><title>t</title></head><body></body></html>"

  /// Starts a shell, and loads the page.
  ///
  /// - Parameter declared: the services of the bundle.
  init(
    _ services: [Service] = [], declared: [String] = [], granted: [ServicePattern] = [],
    limits: LoopbackServer.Limits = .init()
  ) async throws {
    folder = try TemporaryDirectory()
    try Data(Self.document.utf8).write(to: folder.file("index.html"))
    try Data("let a = 1".utf8).write(to: folder.file("app.js"))
    let names = declared.map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
    let json =
      #"{"name":"probe","version":"1","entry":"index.html","services":[\#(names)]}"#
    try Data(json.utf8).write(to: folder.file(FolderDeclaration.fileName))
    let events = EventList()
    self.events = events
    shell = try Shell.start(
      DirectoryBundle(folder.url.path),
      services: ServiceRegistry(services, granting: granted),
      log: { event in events.all.withLock { $0.append(event) } }, limits: limits, in: .system)
    client = RawClient(port: shell.port)
    let authority = "127.0.0.1:\(shell.port)"
    let address = shell.makeAddress()
    let opening = String(address.dropFirst("http://\(authority)".count))
    let opened = try await client.exchange(Self.request("GET", opening, ["Host": authority]))
    guard let set = opened.fields["set-cookie"], let path = set.firstMatch(of: /Path=([^;]+)/)
    else {
      throw TestSupportError("the address does not open the page: \(opened)")
    }
    root = String(path.1)
    cookie = String(set.prefix { $0 != ";" })
    let fields = ["Host": authority, "Cookie": cookie]
    let begun = try await client.exchange(Self.request("GET", root, fields))
    let entry = begun.fields["location"] ?? ""
    base = entry.replacingOccurrences(of: "index.html", with: "")
    let page = try await client.exchange(Self.request("GET", entry, fields))
    guard let secret = page.text.firstMatch(of: /name="ferry-page" content="([^"]+)"/) else {
      throw TestSupportError("the page has no secret: \(begun) \(page)")
    }
    self.secret = String(secret.1)
  }

  /// The fields of the page's own requests; `nil` removes one.
  func fields(_ changes: [String: String?] = [:]) -> [String: String] {
    var fields: [String: String?] = [
      "Host": "127.0.0.1:\(shell.port)", "Origin": "http://127.0.0.1:\(shell.port)",
      "Cookie": cookie, "Ferry-Page": secret, "Content-Type": "application/json",
      "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty",
    ]
    fields.merge(changes) { $1 }
    return fields.compactMapValues { $0 }
  }

  /// Calls a service as the page does.
  func call(
    _ service: String, _ argument: String = "null", _ changes: [String: String?] = [:]
  ) async throws -> RawClient.Answer {
    try await post("call", #"{"service":"\#(service)","argument":\#(argument)}"#, changes)
  }

  func post(
    _ name: String, _ body: String, _ changes: [String: String?] = [:]
  ) async throws -> RawClient.Answer {
    try await client.exchange(
      Self.request("POST", "\(base)-/\(name)", fields(changes), Array(body.utf8)))
  }

  func get(_ path: String, _ changes: [String: String?] = [:]) async throws -> RawClient.Answer {
    try await client.exchange(Self.request("GET", path, fields(changes)))
  }

  static func request(
    _ method: String, _ path: String, _ fields: [String: String], _ body: [UInt8]? = nil
  ) -> [UInt8] {
    var text = "\(method) \(path) HTTP/1.1\r\nConnection: close\r\n"
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
    if let body { text += "Content-Length: \(body.count)\r\n" }
    return Array((text + "\r\n").utf8) + (body ?? [])
  }
}
