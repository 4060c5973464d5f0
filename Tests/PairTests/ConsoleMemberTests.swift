import FerryTestSupport
import Foundation
import Testing

/// The members of a space in the console, in a real browser.
@Suite("Members in the console", .hangLimit)
struct ConsoleMemberTests {
  private static let view = "#/space/groceries/members"
  /// The name of a user, which runs a script if a page reads it as HTML.
  private static let hostile = "<img src=x onerror=\"document.title='caught'\">"

  /// Makes a token of a user.
  private func user(_ name: String, _ server: Server) async throws -> String {
    let made = try await server.ferryd("token", "create", "--owner", name)
    try #require(made.status == .exited(0), "\(made.error)")
    return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  @discardableResult
  private func post(
    _ server: Server, _ path: String, _ token: String, _ json: String, status: Int
  ) async throws -> [String: Any] {
    let answer = try await Wire.send(
      .post, "\(server.url)/v1/\(path)",
      headers: ["Authorization": "Bearer \(token)", "Content-Type": "application/json"],
      body: Array(json.utf8))
    try #require(answer.status == status, "\(path): \(answer.text)")
    return answer.json
  }

  /// Makes a space of Ada's with two other members. Returns the tokens of all.
  private func share(_ server: Server) async throws -> [String] {
    var tokens: [String] = []
    for name in ["ada", "bea", Self.hostile] { tokens.append(try await user(name, server)) }
    try await post(
      server, "spaces", tokens[0], #"{"space":"groceries","title":"<b>Ours</b>"}"#, status: 201)
    let invitation = try await post(
      server, "spaces/groceries/invitations", tokens[0], #"{"role":"writer"}"#, status: 201)
    let code = try #require(invitation["code"] as? String)
    for token in tokens.dropFirst() {
      try await post(server, "invitations", token, #"{"code":"\#(code)"}"#, status: 200)
    }
    return tokens
  }

  /// Returns the page's row of a table, by the text of the first column.
  private static func row(_ first: String) -> String {
    let text = BrowserTab.quoted(first)
    return "[...document.querySelectorAll('tbody tr')].find("
      + "(one) => one.querySelector('td').innerText === \(text))"
  }

  private func setRole(_ tab: BrowserTab, _ user: String, _ role: String) async throws {
    _ = try await tab.value(
      """
      (() => {
        const row = \(Self.row(user));
        row.querySelector("select").value = "\(role)";
        row.querySelector("form").requestSubmit();
      })()
      """)
  }

  /// Presses a button that asks before it acts. Returns the question.
  private func confirm(_ tab: BrowserTab, _ first: String) async throws -> String {
    let button = "\(Self.row(first)).querySelector('button.danger')"
    _ = try await tab.value("\(button).click()")
    let question = try await tab.text("\(button).textContent")
    _ = try await tab.value("\(button).click()")
    return question
  }

  private func untilAnnounced(_ text: String, _ tab: BrowserTab) async throws {
    try await tab.until(
      "document.getElementById('announcement').textContent === \(BrowserTab.quoted(text))")
  }

  @Test("an administrator changes roles and removes a member, whose name stays a text")
  func members() async throws {
    let server = try await Server.start(.embedded, "--create-spaces", "*")
    let tokens = try await share(server)
    let admin = try await server.token("admin", space: "groceries")
    let tab = try await BrowserTab.console(of: server, Self.view)
    try await tab.signIn(admin, to: Self.view)
    let shown =
      try await tab.value(
        "[...document.querySelectorAll('tbody td:first-child')].map((one) => one.innerText)")
      as? [String]
    #expect(shown?.prefix(3) == [Self.hostile, "ada", "bea"])
    let roles = try await tab.text(
      "[...document.querySelectorAll('tbody select')].map((one) => one.value)")
    #expect(roles == "writer,admin,writer")
    #expect(try await tab.text("\(Self.row("bea")).innerText").contains("ada"))
    // A weaker role ends the invitations.
    #expect(try await tab.text("document.querySelectorAll('tbody')[1].rows.length") == "1")
    try await setRole(tab, "bea", "reader")
    try await untilAnnounced("bea is reader", tab)
    #expect(try await tab.text("document.querySelectorAll('tbody')[1].rows.length") == "0")
    #expect(try await confirm(tab, Self.hostile) == "Remove \(Self.hostile)?")
    try await untilAnnounced("\(Self.hostile) is no member any more", tab)
    let answer = try await Wire.send(
      .get, "\(server.url)/v1/spaces/groceries/members",
      headers: ["Authorization": "Bearer \(tokens[1])"])
    let members = try #require(answer.json["members"] as? [[String: Any]])
    #expect(members.map { $0["user"] as? String } == ["owner:ada", "owner:bea"])
    #expect(members.map { $0["role"] as? String } == ["admin", "reader"])
    try await tab.expectClean(server)
  }

  @Test("an administrator invites users by a link that is shown once, and revokes an invitation")
  func invitations() async throws {
    let server = try await Server.start(.embedded, "--create-spaces", "*")
    _ = try await share(server)
    let admin = try await server.token("admin", space: "groceries")
    let tab = try await BrowserTab.console(of: server, Self.view)
    try await tab.signIn(admin, to: Self.view)
    _ = try await tab.value(
      """
      document.querySelector("select[name=role]").value = "reader";
      document.querySelector("input[name=once]").click();
      document.querySelector("form.card").requestSubmit();
      """)
    try await untilAnnounced("The invitation is made. Copy it now.", tab)
    let secrets = "[...document.querySelectorAll('.secret')]"
    let link = try await tab.text("\(secrets)[0].textContent")
    let code = try await tab.text("\(secrets)[1].textContent")
    #expect(link == "\(server.url)/join#\(code)")
    try await expectCopied(tab, link)
    // The link makes one user a member, and its invitation ends.
    let cid = try await user("cid", server)
    let joined = try await post(server, "invitations", cid, #"{"code":"\#(code)"}"#, status: 200)
    #expect(joined["role"] as? String == "reader")
    try await tab.showView("#/space/groceries")
    try await tab.showView(Self.view)
    #expect(try await tab.text("document.querySelectorAll('.secret').length") == "0")
    let rows = "document.querySelectorAll('tbody')[1].rows"
    #expect(try await tab.text("\(rows).length") == "1")
    let id = try await tab.text("\(rows)[0].cells[0].innerText")
    for text in ["writer", "any number of users", "ada"] {
      #expect(try await tab.text("\(rows)[0].innerText").contains(text))
    }
    #expect(try await confirm(tab, id) == "Revoke \(id)?")
    try await untilAnnounced("Invitation \(id) is revoked", tab)
    #expect(tab.requests.allSatisfy { !$0.url.contains(code) })
    try await tab.expectClean(server)
  }

  /// Expects the first button for a secret to copy it, or to select it if the browser does not let it.
  private func expectCopied(_ tab: BrowserTab, _ link: String) async throws {
    let button = "document.querySelector('.secret + button')"
    _ = try await tab.value(
      """
      navigator.clipboard.writeText = async (text) => { window.copied = text; };
      \(button).click();
      """)
    try await tab.until("\(button).textContent === 'Copied'")
    #expect(try await tab.text("window.copied") == link)
    _ = try await tab.value(
      """
      navigator.clipboard.writeText = async () => { throw new Error("not permitted"); };
      \(button).click();
      """)
    try await tab.until("\(button).textContent.startsWith('Selected')")
    #expect(try await tab.text("getSelection()") == link)
  }

  @Test("a refused change keeps the role, and shows the server's reason")
  func refusal() async throws {
    let server = try await Server.start(.embedded, "--create-spaces", "*")
    let tokens = try await share(server)
    let tab = try await BrowserTab.console(of: server, Self.view)
    // A member who is an admin uses the page, too.
    try await tab.signIn(tokens[0], to: Self.view)
    try await setRole(tab, "ada", "reader")
    try await tab.until("document.querySelector('[role=alert]') !== null")
    let shown = try await tab.text("document.querySelector('[role=alert]').innerText")
    #expect(shown.contains("make another member an admin first"), "\(shown)")
    try await tab.showView("#/space/groceries")
    try await tab.showView(Self.view)
    #expect(try await tab.text("\(Self.row("ada")).querySelector('select').value") == "admin")
    try await tab.expectClean(server)
  }
}
