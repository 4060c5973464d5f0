import FerryTestSupport
import Foundation
import Testing

/// The console of a server in a tab.
extension BrowserTab {
  /// Opens a view of the console.
  static func console(of server: Server, _ view: String = "") async throws -> BrowserTab {
    let tab = try await open()
    try await tab.show(width: 1200, height: 900)
    try await tab.go(to: "\(server.url)/console/\(view)")
    return tab
  }

  /// Returns a literal of JavaScript.
  static func quoted(_ text: String) -> String {
    let json = try? JSONSerialization.data(withJSONObject: [text])
    return "\(String(decoding: json ?? Data(), as: UTF8.self))[0]"
  }

  /// Goes to another view, and waits until it is there.
  func showView(_ view: String) async throws {
    _ = try await value("void (location.hash = \(Self.quoted(view)))")
    try await until("document.documentElement.dataset.view === \(Self.quoted(view))")
  }

  /// Signs in with a token, and waits until the view is there.
  func signIn(_ token: String, to view: String = "#/") async throws {
    try await until("document.documentElement.dataset.view === 'sign-in'")
    _ = try await value(
      """
      document.querySelector("input[name=token]").value = \(Self.quoted(token));
      document.querySelector("form").requestSubmit();
      """)
    try await until("document.documentElement.dataset.view === \(Self.quoted(view))")
  }

  /// Expects that nothing of the page was refused or failed, that no text became HTML, and that
  /// openapi.yaml describes each request.
  func expectClean(_ server: Server) async throws {
    #expect(faults == [])
    #expect(try await text("document.querySelectorAll('main img, main b').length") == "0")
    #expect(try await !text("document.title").contains("caught"))
    let foreign = requests.filter {
      !$0.url.hasPrefix(server.url + "/") && !$0.url.hasPrefix("data:")
    }
    #expect(foreign.map(\.url) == [])
    let description = try OpenAPIDescription()
    let own = requests.filter { $0.url.hasPrefix(server.url + "/") }
    #expect(own.contains { !$0.url.hasPrefix(server.url + "/console/") })
    let undescribed = own.compactMap { request in
      description.fault(request.method, String(request.url.dropFirst(server.url.count)))
    }
    #expect(Set(undescribed) == [])
  }
}
