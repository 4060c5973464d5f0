import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Folders dragged into the console, or chosen there, in a real browser.
@Suite("Publishing in the console", .serialized, .hangLimit)
struct ConsoleUploadTests {
  private let draft: Draft

  init() throws { draft = try Draft() }

  /// Starts a server with an empty space.
  private func serve() async throws -> Server {
    let server = try await Server.start()
    let made = try await server.ferryd("space", "create", Device.space)
    #expect(made.status == .exited(0), "\(made.error)")
    return server
  }

  /// Writes a version of a bundle into the folder.
  private func write(_ version: String) throws {
    try draft.write("index.html", Array("<h1>\(version)</h1>".utf8))
    try draft.write("pages/style.css", Array("h1 { color: red }".utf8))
    try draft.write(".hidden", [1])
    try draft.write(
      "ferry-bundle.json",
      Array(#"{"name":"board","version":"\#(version)","services":[{"name":"data"}]}"#.utf8))
  }

  private func submit(_ tab: BrowserTab, _ fields: [String: String]) async throws {
    for (name, value) in fields {
      _ = try await tab.value(
        """
        document.querySelector("input[name=\(name)]").value = \(BrowserTab.quoted(value)); 0
        """)
    }
    _ = try await tab.value("document.querySelector('form.card').requestSubmit()")
    try await tab.until("document.querySelector('form.card .good, form.card [role=alert]')")
  }

  private func result(_ tab: BrowserTab) async throws -> String {
    try await tab.text("document.querySelector('form.card .good')?.textContent")
  }

  /// Fetches the mission, and expects the folder's files.
  private func expectFiles(_ mission: String, on server: Server) async throws {
    let device = try await Device.joined(server.url)
    let replica = try await device.open()
    try await replica.sync()
    let missions = try await replica.missionManager()
    try await missions.download(mission)
    try await missions.waitUntilIdle(mission)
    let folder = try await missions.path(mission)
    #expect(try draft.isEqual(to: folder))
    await replica.close()
  }

  @Test("a folder that is dragged into the page becomes a mission with its subfolders")
  func dragged() async throws {
    let server = try await serve()
    try draft.write("deep/er/a.txt", Array("hello".utf8))
    try draft.write("film.bin", mebibytes: 9)
    let tab = try await BrowserTab.console(of: server, "#/space/demo/missions")
    try await tab.until("document.querySelector('.drop')")
    #expect(try await tab.text("document.querySelector('form.card button').disabled") == "true")
    try await tab.drop(draft.path, on: ".drop")
    try await tab.until("!document.querySelector('form.card button').disabled")
    let picked = try await tab.text("document.querySelector('.drop').innerText")
    #expect(picked.contains("draft: 2 files, 9.0 MiB"), "\(picked)")
    // Each step of the progress on the page.
    _ = try await tab.value(
      """
      window.steps = [];
      new MutationObserver(() => steps.push(document.querySelector("progress")?.value))
        .observe(document.querySelector("form.card"), { subtree: true, childList: true });
      """)
    try await submit(tab, [:])
    #expect(try await result(tab) == "draft version 1 is published: 2 files, 9.0 MiB")
    let steps = try await tab.value("steps.filter((one) => one > 0 && one < 1).length") as? Int
    #expect((steps ?? 0) >= 3)
    #expect(
      try await tab.text("document.querySelector('tbody').innerText").contains("draft"))
    try await tab.expectClean(server)
    try await expectFiles("draft", on: server)
  }

  @Test("a folder that is chosen becomes the same mission")
  func chosen() async throws {
    let server = try await serve()
    try draft.write("a.txt", Array("hello".utf8))
    try draft.write("deep/er/b.txt", Array("deeper".utf8))
    let tab = try await BrowserTab.console(of: server, "#/space/demo/missions")
    try await tab.until("document.querySelector('.drop input')")
    // The browser's own control takes the folder: the page learns of it as if it had been chosen in
    // the dialog.
    _ = try await tab.value(
      """
      for (const event of ["dragover", "drop"]) {
        document.querySelector(".drop input").addEventListener(event, (one) => one.stopPropagation());
      }
      """)
    try await tab.drop(draft.path, on: ".drop input")
    try await tab.until("!document.querySelector('form.card button').disabled")
    let control = try await tab.text("document.querySelector('.drop input').files.length")
    #expect(control == "2")
    try await submit(tab, ["mission": "tour", "title": "A <b>tour</b>"])
    #expect(try await result(tab) == "tour version 1 is published: 2 files, 11 B")
    try await tab.expectClean(server)
    try await expectFiles("tour", on: server)
  }

  @Test("a bundle is dragged into the page, offered to more devices, counted and withdrawn")
  func bundle() async throws {
    let server = try await Server.start()
    let token = try await server.token("admin")
    try write("1")
    let tab = try await BrowserTab.console(of: server)
    try await tab.until("document.documentElement.dataset.view === 'sign-in'")
    _ = try await tab.value("sessionStorage.setItem('ferry-token', \(BrowserTab.quoted(token)))")
    try await tab.showView("#/space/demo/bundles")
    try await tab.drop(draft.path, on: ".drop")
    try await tab.until("!document.querySelector('form.card button').disabled")
    let picked = try await tab.text("document.querySelector('.drop').innerText")
    #expect(picked.contains("draft: board 1, 2 files, "), "\(picked)")
    try await submit(tab, ["title": "The <b>board</b>", "percent": "12.5"])
    #expect(
      try await result(tab).hasPrefix("board 1 is published: 2 files, "), "another result")
    let row = "document.querySelector('section tbody tr')"
    #expect(try await tab.text("\(row).innerText").contains("12.5 % of devices"))

    _ = try await tab.value(
      "\(row).querySelector('input').value = '100'; \(row).querySelector('form').requestSubmit()")
    try await tab.until("\(row).innerText.includes('100 % of devices')")
    try await report(to: server, token)
    try await tab.showView("#/space/demo")
    try await tab.showView("#/space/demo/bundles")
    let section = try await tab.text("document.querySelector('section').textContent")
    #expect(section.contains("a <b>blank</b> page"), "\(section)")
    #expect(try await tab.text("\(row).querySelector('.bad').textContent") == "1")

    let withdraw = "\(row).querySelector('button.danger')"
    _ = try await tab.value("\(withdraw).click()")
    #expect(try await tab.text("\(withdraw).textContent") == "Withdraw 1 for good?")
    _ = try await tab.value("\(withdraw).click()")
    try await tab.until("\(row).querySelector('.badge')?.textContent === 'withdrawn'")
    #expect(try await tab.text("\(row).querySelectorAll('button').length") == "0")
    // The page shows the server's refusal with the reason.
    try await tab.drop(draft.path, on: ".drop")
    try await tab.until("!document.querySelector('form.card button').disabled")
    try await submit(tab, ["title": "The <b>board</b>"])
    let refusal = try await tab.text("document.querySelector('[role=alert]').innerText")
    #expect(refusal.contains("withdrawn"), "\(refusal)")
    #expect(tab.requests.allSatisfy { !$0.url.contains(token) })
    try await tab.expectClean(server)
  }

  /// A device fetches the bundle, and reports a failure.
  private func report(to server: Server, _ token: String) async throws {
    let device = try await Device.joined(server.url, token: token)
    try await device.ferry("bundle", "fetch", "board", "--activate")
    try await device.ferry("bundle", "fallback", "board", "--reason", "a <b>blank</b> page")
    try await device.ferry("sync")
  }

  @Test("a folder without a declaration, or with a wrong one, is not published as a bundle")
  func faults() async throws {
    let server = try await serve()
    let tab = try await BrowserTab.console(of: server, "#/space/demo/bundles")
    try await tab.until("document.querySelector('.drop')")
    try draft.write("index.html", Array("<h1>0</h1>".utf8))
    for (declaration, text) in [
      (nil, "It has no file ferry-bundle.json."),
      ("{", "It is not JSON"), ("[]", "It is not a JSON object"),
      (#"{"name":"board","version":1}"#, "Its version is a text"),
      (#"{"name":"Board","version":"1"}"#, "Its name needs"),
      (#"{"name":"board","version":"1","persent":5}"#, "no member “persent”"),
      (#"{"name":"board","version":"1","services":[{"nam":"x"}]}"#, "no member “nam”"),
      (#"{"name":"board","version":"1","minShell":"01"}"#, "Its minShell is a text"),
    ] as [(String?, String)] {
      if let declaration { try draft.write("ferry-bundle.json", Array(declaration.utf8)) }
      _ = try await tab.value("document.querySelector('[role=alert]')?.remove()")
      try await tab.drop(draft.path, on: ".drop")
      try await tab.until("document.querySelector('[role=alert]')")
      let shown = try await tab.text("document.querySelector('[role=alert]').innerText")
      #expect(shown.contains(text), "\(shown)")
      #expect(try await tab.text("document.querySelector('form.card button').disabled") == "true")
    }
    let published = try await Wire.send(.get, "\(server.url)/v1/spaces/demo/missions")
    #expect((published.json["missions"] as? [Any])?.isEmpty == true)
    try await tab.expectClean(server)
  }
}
