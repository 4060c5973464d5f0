import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The figures of the console, against what devices have done.
@Suite("The figures of the console", .serialized, .hangLimit)
struct ConsoleFigureTests {
  /// Returns the cells of the rows of a view's table, by their labels.
  private func rows(_ tab: BrowserTab) async throws -> [[String: String]] {
    let found = try await tab.value(
      """
      [...document.querySelectorAll("main tbody tr")].map((row) => Object.fromEntries(
        [...row.cells].map((cell) => [cell.dataset.label, cell.innerText])))
      """)
    return try #require(found as? [[String: String]])
  }

  /// Returns the figures at the top of a view, by their names.
  private func facts(_ tab: BrowserTab) async throws -> [String: String] {
    let found = try await tab.value(
      """
      Object.fromEntries([...document.querySelectorAll("main .facts > div")].map((one) =>
        [one.querySelector("dt").innerText, one.querySelector("dd").innerText]))
      """)
    return try #require(found as? [String: String])
  }

  /// Returns the members of an answer's only list.
  private func list(_ name: String, of server: Server, _ view: String) async throws -> [JSONLine] {
    let answer = try await Wire.send(.get, "\(server.url)/v1/spaces/\(Device.space)/\(view)")
    let list = try #require(answer.json[name] as? [[String: Any]], "\(answer.text)")
    return list.map { JSONLine(members: $0) }
  }

  /// Sends a packet whose predecessor is missing on the server. Returns the sending device.
  private func sendOutOfOrder(to server: Server) async throws -> String {
    let device = "0199c306-6400-7000-800a-11ce000000ff"
    let packet = #"""
      {"device":"\#(device)","dependency":"0199c82c-c001-7000-800a-0000000000f0","base":"0",
      "operations":[{"id":"0199c82c-c001-7000-800a-0000000000f1","table":"notes","record":"late",
      "kind":"insert","time":"0199c82cc0010000","data":{"body":"late","n":1}}]}
      """#
    let answer = try await Wire.send(
      .post, "\(server.url)/v1/spaces/\(Device.space)/packets", body: Array(packet.utf8))
    #expect(answer.json["status"] as? String == "buffered", "\(answer.text)")
    return device
  }

  @Test("a space shows its head, its rate, its records, its size and its retention")
  func spaces() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let body = String(repeating: "x", count: 500 << 10)
    try await device.write(
      "INSERT INTO notes VALUES ('a', ?, 1), ('b', 'b', 2), ('c', 'c', 3), ('d', 'd', 4)",
      [.text(body)])
    try await device.exchange()
    try await device.write("UPDATE notes SET n = 9 WHERE id = 'b'")
    try await device.write("DELETE FROM notes WHERE id = 'd'")
    try await device.exchange()
    let tab = try await BrowserTab.console(of: server)
    for (retention, shown) in [("36h", "1 day"), ("30d", "30 days"), ("forever", "for ever")] {
      let set = try await server.ferryd("space", "set", Device.space, "--retention", retention)
      try #require(set.status == .exited(0), "\(set.error)")
      try await tab.showView("#/audit")
      try await tab.showView("#/")
      let row = try #require(try await rows(tab).first)
      #expect(row["Space"] == Device.space)
      #expect(row["Head"] == "6")
      #expect(row["Last hour"] == "6 operations")
      #expect(row["Records"] == "3")
      #expect(row["Devices"] == "1")
      #expect(row["Buffered"] == "none")
      #expect(row["History"] == shown)
      // The large value, and less than 2 KiB of names and stamps.
      let size = try #require(row["Size"]?.wholeMatch(of: #/(\d+) KiB/#), "\(row)")
      #expect((500...502).contains(Int(size.1) ?? 0), "\(size.0)")

      try await tab.showView("#/space/\(Device.space)")
      let facts = try await facts(tab)
      #expect(facts["Head"]?.hasPrefix("6\nepoch ") == true, "\(facts)")
      #expect(facts["Last hour"] == "6\noperations")
      #expect(facts["Records"] == "3\n\(size.0)")
      #expect(facts["History is kept"] == "\(shown)\nfrom place 0")
      #expect(facts["Buffered packets"] == "0\n0 B")
    }
    try await tab.expectClean(server)
  }

  @Test("a device that is left behind shows by how much, and one whose packet waits shows that")
  func devices() async throws {
    let server = try await Server.start()
    let before = Date.now.timeIntervalSince1970.rounded(.down)
    let (ahead, behind) = (
      try await Device.joined(server.url), try await Device.joined(server.url)
    )
    for (device, name) in [(ahead, "ahead"), (behind, "behind")] {
      try await device.open().setDeviceName(name)
      try await device.write("INSERT INTO notes VALUES ('\(name)', 'x', 1)")
      try await device.exchange()
    }
    try await behind.exchange()
    // A page of changes states a place: this device knows both inserts, and then misses three.
    try await ahead.exchange()
    try await ahead.write("INSERT INTO notes VALUES ('1', 'x', 1), ('2', 'x', 2), ('3', 'x', 3)")
    try await ahead.exchange()
    let waiting = try await sendOutOfOrder(to: server)
    let after = Date.now.timeIntervalSince1970.rounded(.up)

    let tab = try await BrowserTab.console(of: server, "#/space/\(Device.space)/devices")
    try await tab.until("document.querySelectorAll('tbody tr').length === 3")
    let rows = try await rows(tab)
    func row(_ name: String) throws -> [String: String] {
      try #require(rows.first { $0["Device"]?.contains(name) == true }, "\(rows)")
    }
    #expect(try row("ahead")["Behind"] == "up to date")
    #expect(try row("behind")["Behind"] == "3 places\nat 2")
    #expect(try row("behind")["Buffered"] == "none")
    #expect(try row(String(waiting.suffix(8)))["Behind"] == "unknown")
    let buffered = try row(String(waiting.suffix(8)))["Buffered"] ?? ""
    let bytes = try #require(buffered.wholeMatch(of: #/1 packet\s+(\d+) B/#), "\(buffered)")
    let answered = try await list("devices", of: server, "devices")
    let late = try #require(answered.first { $0.text("device") == waiting })
    #expect(late.number("bufferedBytes") == Int(bytes.1) && Int(bytes.1) ?? 0 > 100)
    for row in rows {
      let seen = try #require(row["Last seen"]?.split(separator: "\n").last)
      let date = try Date("\(seen.dropLast(4).replacing(" ", with: "T"))Z", strategy: .iso8601)
      #expect((before...after).contains(date.timeIntervalSince1970), "\(row)")
      #expect(row["Last seen"]?.contains(#/^(just now|\d+ (second|minute)s? ago)\n/#) == true)
    }
    let places = Dictionary(
      uniqueKeysWithValues: answered.map { ($0.text("name"), $0.text("behind")) })
    #expect(places == ["ahead": "0", "behind": "3", nil: nil])

    try await tab.showView("#/")
    #expect(try await self.rows(tab).first?["Buffered"] == "1 packet")
    try await behind.exchange()
    try await tab.showView("#/space/\(Device.space)/devices")
    let caughtUp = try await self.rows(tab).filter { $0["Behind"] == "up to date" }
    #expect(caughtUp.count == 2)
    try await tab.expectClean(server)
  }

  @Test("values that lost and rejected packets are drawn over time")
  func conflicts() async throws {
    let server = try await Server.start()
    let devices = [try await Device.joined(server.url), try await Device.joined(server.url)]
    try await devices[0].write("INSERT INTO notes VALUES ('a', 'old', 1)")
    for device in devices { try await device.exchange() }
    let tab = try await BrowserTab.console(of: server, "#/space/\(Device.space)")
    let titles = ["in the last hour", "in 7 days"].map { "Conflicts and rejected packets \($0)" }
    func chart(_ title: String) -> String {
      "document.querySelector(`svg[aria-label^=\"\(title):\"]`)"
    }
    for title in titles {
      try await tab.until("\(chart(title)) !== null")
      let label = try await tab.text("\(chart(title)).getAttribute('aria-label')")
      #expect(label == "\(title): 0 values that lost, 0 rejected packets")
      #expect(try await tab.text("\(chart(title)).querySelectorAll('.bar').length") == "0")
    }
    for (number, device) in devices.enumerated() {
      try await device.write("UPDATE notes SET body = 'of \(number)', n = \(10 + number)")
    }
    for device in devices { try await device.exchange() }
    let refused = try await Wire.send(
      .post, "\(server.url)/v1/spaces/\(Device.space)/packets", body: Array("{}".utf8))
    #expect(refused.status == 400)
    #expect(try await list("conflicts", of: server, "conflicts").count == 1)

    try await tab.showView("#/")
    try await tab.showView("#/space/\(Device.space)")
    for title in titles {
      let label = try await tab.text("\(chart(title)).getAttribute('aria-label')")
      let counts = try #require(
        label.wholeMatch(of: #/.*: (\d+) values that lost, 1 rejected packets/#), "\(label)")
      #expect(counts.1 == "2", "\(label)")
      for kind in ["second", "bad"] {
        let heights = try await tab.value(
          "[...\(chart(title)).querySelectorAll('.bar.\(kind)')].map((bar) => +bar.getAttribute('height'))"
        )
        let drawn = try #require(heights as? [Double])
        #expect(drawn.count == 1 && drawn.allSatisfy { $0 > 10 }, "\(kind): \(drawn)")
      }
    }
    for title in ["Operations in the last hour", "Operations in 7 days"] {
      let label = try await tab.text("\(chart(title)).getAttribute('aria-label')")
      #expect(label == "\(title): 3 operations")
    }
    try await tab.expectClean(server)
  }

  @Test("requests and their latency are drawn as they happen")
  func live() async throws {
    let server = try await Server.start()
    try #require(try await server.ferryd("space", "create", Device.space).status == .exited(0))
    let tab = try await BrowserTab.console(of: server, "#/server")
    let charts = "[...document.querySelectorAll('svg[role=img]')]"
    try await tab.until("\(charts).length === 3")
    // The labels and lines shown by the page from now on, one list for each drawing.
    _ = try await tab.value(
      """
      window.seen = [];
      window.look = () => \(charts).forEach((chart, index) => (seen[index] ??= []).push({
        label: chart.getAttribute("aria-label"),
        length: chart.querySelector(".line").getAttribute("d").length,
      }));
      look();
      new MutationObserver(look).observe(document.querySelector(".columns"), { childList: true });
      0
      """)
    let label = try await tab.text("seen[0][0].label")
    #expect(label == "Requests a second: 0.0 now, 0.0 of them failed")
    let latency = try await tab.text("seen[1][0].label")
    #expect(latency == "Latency: half of the requests took at most unknown milliseconds")
    // Two samples: an idle stretch is drawn as such.
    try await tab.until("seen[0].length > 2")
    for number in 0..<60 {
      let path = number % 3 == 0 ? "nowhere" : "spaces/\(Device.space)"
      let answer = try await Wire.send(.get, "\(server.url)/v1/\(path)")
      #expect(answer.status == (number % 3 == 0 ? 404 : 200))
    }
    try await tab.until(
      "seen[0].some(({ label }) => !/: 0\\.0 now/.test(label) && !/ 0\\.0 of them/.test(label))")
    try await tab.until("seen[1].some(({ label }) => /at most [0-9.]+ milliseconds$/.test(label))")
    for drawing in 0..<2 {
      try await tab.until("seen[\(drawing)].at(-1).length > seen[\(drawing)][0].length")
    }
    #expect(
      try await tab.text("seen[2].every(({ label }) => label === seen[2][0].label)") == "true",
      "no operation was applied")
    try await tab.expectClean(server)
  }
}
