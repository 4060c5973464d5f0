import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The console of `ferryd` in a real browser.
@Suite("The console in a browser", .serialized, .hangLimit)
struct ConsoleTests {
  /// A name that runs a script if a page reads it as HTML.
  private static let hostile = #"<img src=x onerror="document.title='caught'">"#

  /// Returns two devices, of which one lost a value against the other.
  private func conflict(on server: Server) async throws -> [Device] {
    let devices = [try await Device.joined(server.url), try await Device.joined(server.url)]
    let replica = try await devices[0].open()
    try await replica.setDeviceName("Ada's laptop")
    try await devices[0].write(
      "INSERT INTO notes VALUES (?, 'old', 1)", [.text(Self.hostile)])
    for device in devices { try await device.exchange() }
    try await devices[0].write("UPDATE notes SET body = 'the loser'")
    try await devices[1].write("UPDATE notes SET body = '<b>winner</b>'")
    for device in devices { try await device.exchange() }
    return devices
  }

  @Test("every view of an open server shows what users wrote as text, and asks this server alone")
  func views() async throws {
    let server = try await Server.start()
    let devices = try await conflict(on: server)
    _ = devices
    let tab = try await BrowserTab.console(of: server)
    try await tab.until("document.documentElement.dataset.view === '#/'")
    #expect(try await tab.text("document.querySelector('main').innerText").contains("demo"))
    let expected: [(view: String, texts: [String])] = [
      ("#/space/demo", ["Operations in the last hour", "Head"]),
      (
        "#/space/demo/devices",
        ["Ada's laptop", "up to date", "anonymous", "ferry/\(ClientVersion.current)"]
      ),
      ("#/space/demo/members", ["The space has no members", "No invitation is in force"]),
      ("#/space/demo/records?table=notes", [Self.hostile, "<b>winner</b>"]),
      ("#/space/demo/conflicts", ["the loser", "Ada's laptop", Self.hostile]),
      ("#/space/demo/rejections", ["Nothing was rejected"]),
      ("#/space/demo/schema", ["No schema is in force"]),
      ("#/space/demo/missions", ["No mission is published"]),
      ("#/space/demo/bundles", ["No bundle is published", "Publish a version"]),
      ("#/server", ["Requests a second", "Latency", "Runs for"]),
      ("#/tokens", ["There are no tokens"]), ("#/audit", ["space_created"]),
    ]
    for (view, texts) in expected {
      try await tab.showView(view)
      let shown = try await tab.text("document.querySelector('main').innerText")
      for text in texts { #expect(shown.contains(text), "\(view): \(shown)") }
    }
    try await tab.expectClean(server)
  }

  @Test("a record shows its history: who wrote, when, and what lost")
  func history() async throws {
    let server = try await Server.start(.postgres)
    _ = try await conflict(on: server)
    let tab = try await BrowserTab.console(of: server, "#/space/demo/records?table=notes")
    try await tab.until("document.querySelector('tbody a') !== null")
    _ = try await tab.value("document.querySelector('tbody a').click()")
    try await tab.until("document.querySelectorAll('section').length === 2")
    let rows = "document.querySelectorAll('section:last-of-type tbody tr')"
    #expect(try await tab.text("\(rows).length") == "3")
    let history = try await tab.text("document.querySelector('section:last-of-type').innerText")
    for text in ["the loser", "Ada's laptop", "insert", "This is all of the space's history."] {
      #expect(history.contains(text), "\(history)")
    }
    #expect(try await tab.text("document.querySelector('.lost').textContent") == "the loser")
    let now = try await tab.text("document.querySelector('section table').innerText")
    #expect(now.contains("<b>winner</b>"))
    try await tab.expectClean(server)
  }

  @Test("a token opens the page, is in no address, and goes when the user signs out")
  func tokens() async throws {
    let server = try await Server.start()
    let token = try await server.token("admin")
    let tab = try await BrowserTab.console(of: server)
    try await tab.until("document.documentElement.dataset.view === 'sign-in'")
    _ = try await tab.value(
      """
      document.querySelector("input[name=token]").value = "ferry_wrong";
      document.querySelector("form").requestSubmit();
      """)
    try await tab.until("document.querySelector('[role=alert]') !== null")
    try await tab.signIn(token)
    #expect(try await tab.text("document.querySelector('main').innerText").contains("demo"))
    // A token of this page, used by another program and revoked again.
    try await tab.showView("#/tokens")
    let start = Date.now
    _ = try await tab.value(
      """
      document.querySelector("input[name=name]").value = "Display <b>";
      document.querySelector("input[name=spaces]").value = "demo";
      document.querySelector("select[name=life]").value = "3600";
      document.querySelector("form").requestSubmit();
      """)
    try await tab.until("document.querySelector('.secret') !== null")
    let end = Date.now
    let made = try await tab.text("document.querySelector('.secret').textContent")
    let asked = try await Wire.send(
      .get, "\(server.url)/v1/spaces/demo", headers: ["Authorization": "Bearer \(made)"])
    #expect(asked.status == 200 && asked.text.contains("reader"))
    try await tab.until("document.querySelectorAll('tbody tr').length === 2")
    let last = "[...document.querySelectorAll('tbody tr')].at(-1)"
    #expect(try await tab.text("\(last).innerText").contains("Display <b>"))
    try await expectExpiry(tab, "\(last)", server, token, between: start, and: end)
    let revoke = "\(last).querySelector('button')"
    // The second press confirms.
    _ = try await tab.value("\(revoke).click()")
    #expect(try await tab.text("\(revoke).textContent") == "Revoke Display <b>?")
    _ = try await tab.value("\(revoke).click()")
    try await tab.until("document.querySelectorAll('tbody tr').length === 1")
    try await eventually("the token to be refused", from: server) {
      let answer = try await Wire.send(
        .get, "\(server.url)/v1/spaces/demo", headers: ["Authorization": "Bearer \(made)"])
      return answer.status == 401
    }
    #expect(tab.requests.allSatisfy { !$0.url.contains(token) && !$0.url.contains(made) })
    _ = try await tab.value("document.getElementById('sign-out').click()")
    try await tab.until("document.documentElement.dataset.view === 'sign-in'")
    #expect(try await tab.text("sessionStorage.length") == "0")
    try await tab.expectClean(server)
  }

  /// Expects the last token to expire an hour after it was made, and the first one never.
  private func expectExpiry(
    _ tab: BrowserTab, _ row: String, _ server: Server, _ token: String, between start: Date,
    and end: Date
  ) async throws {
    let answer = try await Wire.send(
      .get, "\(server.url)/v1/tokens", headers: ["Authorization": "Bearer \(token)"])
    let tokens = try #require(answer.json["tokens"] as? [[String: Any]])
    let milliseconds = try #require(tokens.last?["expiresAt"] as? Double)
    let expiry = Date(timeIntervalSince1970: milliseconds / 1_000)
    // The server counts whole milliseconds, or whole seconds.
    let bounds = start.addingTimeInterval(3_599)...end.addingTimeInterval(3_601)
    #expect(bounds.contains(expiry))
    let cell = "querySelector('td[data-label=Expires]').innerText"
    let shown = expiry.formatted(.iso8601.dateTimeSeparator(.space)).dropLast()
    #expect(try await tab.text("\(row).\(cell)") == "\(shown) UTC")
    #expect(try await tab.text("document.querySelector('tbody tr').\(cell)") == "never")
  }

  @Test("the schema editor names records that do not fit, and puts nothing in force by a check")
  func schema() async throws {
    let server = try await Server.start()
    _ = try await conflict(on: server)
    let tab = try await BrowserTab.console(of: server, "#/space/demo/schema")
    try await tab.until("document.querySelector('textarea') !== null")
    func write(_ json: String) async throws {
      _ = try await tab.value(
        """
        document.querySelector("textarea").value = \(BrowserTab.quoted(json));
        document.querySelector("textarea").dispatchEvent(new Event("input"));
        document.querySelector("main button.quiet").click();
        """)
    }
    try await write(#"{"tables":{"notes":{"columns":{"body":{"type":"integer"}}}}}"#)
    try await tab.until("document.querySelector('[role=alert]') !== null")
    let misfit = try await tab.text("document.querySelector('[role=alert]').innerText")
    #expect(misfit.contains("1 record does not fit") && misfit.contains(Self.hostile), "\(misfit)")
    #expect(try await tab.text("document.querySelector('button[type=submit]').disabled") == "true")
    try await write("{")
    try await tab.until(
      "document.querySelector('[role=alert]').innerText.includes('This is not JSON')")
    try await write(#"{"tables":{"notes":{"columns":{"body":{"type":"text"}}}}}"#)
    try await tab.until("document.querySelector('p.good') !== null")
    let before = try await Wire.send(.get, "\(server.url)/v1/spaces/demo/schema")
    #expect(before.json["version"] as? Int == 0)
    _ = try await tab.value("document.querySelector('form').requestSubmit()")
    try await tab.until(
      "document.querySelector('p.good')?.textContent === 'Version 1 is in force.'")
    let after = try await Wire.send(.get, "\(server.url)/v1/spaces/demo/schema")
    #expect(after.json["version"] as? Int == 1)
    // A text without a rule in force asks with the list.
    try await write(#"{"tables":{}}"#)
    try await tab.until("document.querySelector('input[name=drop]') !== null")
    let losses = try await tab.text("document.querySelector('[role=alert]').innerText")
    #expect(losses.contains("1 rule in force is missing in the text"), "\(losses)")
    #expect(losses.contains("the type of column body of notes"), "\(losses)")
    #expect(try await tab.text("document.querySelector('button[type=submit]').disabled") == "true")
    _ = try await tab.value("document.querySelector('input[name=drop]').click()")
    try await tab.until("!document.querySelector('button[type=submit]').disabled")
    _ = try await tab.value("document.querySelector('form').requestSubmit()")
    try await tab.until(
      "document.querySelector('p.good')?.textContent === 'Version 2 is in force.'")
    try await tab.expectClean(server)
  }

  @Test("a refused operation is listed with its reason")
  func rejections() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let schema = #"{"tables":{"notes":{"columns":{"n":{"type":"text"}}}}}"#
    _ = try await Wire.send(
      .put, "\(server.url)/v1/spaces/demo/schema", body: Array(schema.utf8))
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await device.exchange(exits: 4)
    let tab = try await BrowserTab.console(of: server, "#/space/demo/rejections")
    try await tab.until("document.querySelector('tbody tr') !== null")
    let shown = try await tab.text("document.querySelector('tbody').innerText")
    #expect(shown.contains("schema_violation") && shown.contains("notes / a"), "\(shown)")
    try await tab.expectClean(server)
  }

  @Test("the page fits a phone's width, and every view has one heading and named controls")
  func phone() async throws {
    let server = try await Server.start()
    _ = try await conflict(on: server)
    let tab = try await BrowserTab.console(of: server)
    try await tab.show(width: 390)
    try await tab.until("document.documentElement.dataset.view === '#/'")
    for view in [
      "#/", "#/server", "#/tokens", "#/audit", "#/space/demo", "#/space/demo/devices",
      "#/space/demo/members",
      "#/space/demo/records?table=notes", "#/space/demo/conflicts", "#/space/demo/rejections",
      "#/space/demo/schema", "#/space/demo/missions", "#/space/demo/bundles",
    ] {
      try await tab.showView(view)
      let width = try await tab.text("document.documentElement.scrollWidth")
      #expect(width == "390", "\(view) is \(width) wide")
      #expect(try await tab.text("document.querySelectorAll('h1, main h2').length") == "2")
      let unnamed = try await tab.text(
        """
        [...document.querySelectorAll("input, select, textarea, button, a")].filter((one) =>
          !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()))
          .map((one) => one.outerHTML).join()
        """)
      #expect(unnamed == "", "\(view)")
      let focused = try await tab.text("document.activeElement.tagName")
      #expect(focused == "H2", "\(view) leaves the focus at \(focused)")
    }
    try await tab.expectClean(server)
  }

  @Test("a keyboard reaches every view, and the page announces its content")
  func keyboard() async throws {
    let server = try await Server.start()
    _ = try await conflict(on: server)
    let tab = try await BrowserTab.console(of: server)
    try await tab.until("document.documentElement.dataset.view === '#/'")
    _ = try await tab.value("document.getElementById('skip').focus()")
    var labels: [String] = []
    for _ in 0..<7 {
      labels.append(try await tab.text("document.activeElement.textContent"))
      if labels.count < 7 { try await tab.press("Tab", code: 9) }
    }
    let main = ["Skip to the content", "Ferry console", "Spaces", "Server", "Tokens", "Audit log"]
    #expect(labels == main + ["demo"])
    try await tab.press("Enter", code: 13, text: "\r")
    try await tab.until("document.documentElement.dataset.view === '#/space/demo'")
    try await tab.showView("#/space/demo/devices")
    #expect(
      try await tab.text("document.getElementById('announcement').textContent")
        == "Devices: 2 shown")
    #expect(
      try await tab.text("document.querySelector('.tabs [aria-current=page]').textContent")
        == "Devices")
    try await tab.expectClean(server)
  }

  @Test("dark colours are those of a dark page")
  func dark() async throws {
    let server = try await Server.start()
    let tab = try await BrowserTab.console(of: server)
    var colours: [String] = []
    for isDark in [false, true] {
      try await tab.show(width: 1200, isDark: isDark)
      try await tab.until("getComputedStyle(document.body).backgroundColor !== 'rgba(0, 0, 0, 0)'")
      colours.append(try await tab.text("getComputedStyle(document.body).backgroundColor"))
    }
    #expect(colours == ["rgb(245, 246, 248)", "rgb(18, 22, 28)"])
    #expect(try await tab.picture().count > 5_000)
  }

  @Test("the console's files have a strict policy, and no other file is there")
  func files() async throws {
    let server = try await Server.start()
    _ = try await server.token("admin")
    let page = try await Wire.send(.get, "\(server.url)/console/")
    #expect(page.status == 200)
    let policy = page.headers["Content-Security-Policy"] ?? ""
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
      #expect(policy.contains(rule))
    }
    #expect(!policy.contains("unsafe"))
    #expect(page.headers["X-Content-Type-Options"] == "nosniff")
    #expect(page.headers["Referrer-Policy"] == "no-referrer")
    let redirect = try await Wire.send(.get, "\(server.url)/console")
    #expect(redirect.status == 200 || redirect.headers["Location"] == "/console/")
    for name in ["x.js", "..%2Fstyle.css", "index.html%00"] {
      #expect(try await Wire.send(.get, "\(server.url)/console/\(name)").status >= 400, "\(name)")
    }
  }
}
