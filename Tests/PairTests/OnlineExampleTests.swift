import FerryTestSupport
import Foundation
import Testing

/// The example `Examples/Online` in a real browser, from a separate origin.
@Suite("The online client in a browser", .serialized, .hangLimit)
struct OnlineExampleTests {
  private let pages: PageServer
  private let browser: HeadlessBrowser

  init() throws {
    pages = try PageServer("Examples/Online")
    browser = try HeadlessBrowser()
  }

  /// Connects by the form of the page.
  private func connect(_ server: Server, _ token: String) -> String {
    """
    const form = document.getElementById("connection");
    form.elements.server.value = "\(server.url)";
    form.elements.space.value = "\(Device.space)";
    form.elements.token.value = "\(token)";
    form.requestSubmit();
    const status = () => document.getElementById("status").textContent;
    const fields = () => [...document.querySelectorAll("#records input")];
    const values = () => fields().map((field) => field.value).sort().join("|");
    """
  }

  /// Starts a server for one permitted origin, by default the page's, and a device with notes on
  /// the server.
  private func start(
    _ notes: String = "('a', 'Buy milk', 2)", permitting origin: String? = nil
  ) async throws -> (server: Server, token: String, device: Device) {
    let server = try await Server.start(.embedded, "--allow-origin", origin ?? pages.origin)
    let token = try await server.token("admin")
    let device = try await Device.joined(server.url, token: token)
    try await device.write("INSERT INTO notes VALUES \(notes)")
    #expect(try await device.exchange().pushed > 0)
    return (server, token, device)
  }

  @Test("a page shows records, edits one, and shows another device's change as it happens")
  func wholeWay() async throws {
    let (server, token, device) = try await start("('a', 'Buy milk', 2), ('b', '<b>é', 7)")
    let tab = try pages.open(
      in: browser,
      probe: connect(server, token) + """
        await until(() => values() === "2|7|<b>é|Buy milk");
        report("shown", document.querySelector("#records h2").textContent + " " + status());
        const field = fields().find((field) => field.value === "Buy milk");
        field.value = "Buy oat milk";
        field.dispatchEvent(new Event("change"));
        await until(() => values().includes("Call Zoë"));
        report("live", values());
        await until(() => fields().length < 4);
        report("deleted", values());
        """)
    defer { tab.send(SIGKILL) }
    #expect(try await pages.report("shown").hasPrefix("notes/a Live: 2 records, head 2."))
    try await eventually("the page's edit on the device") {
      try await device.exchange()
      return try await device.rows() == [
        ["a", "Buy oat milk", 2], ["b", "<b>é", 7],
      ]
    }
    try await device.write("UPDATE notes SET body = 'Call Zoë' WHERE id = 'b'")
    #expect(try await device.exchange().pushed == 1)
    #expect(try await pages.report("live").contains("Buy oat milk"))
    try await device.write("DELETE FROM notes WHERE id = 'b'")
    #expect(try await device.exchange().pushed == 1)
    #expect(try await !pages.report("deleted").contains("Zoë"))
    #expect(try await device.exchange().conflicts == 0)
  }

  @Test("an edit waits for a server that is away, and is applied once")
  func away() async throws {
    let (server, token, device) = try await start()
    let tab = try pages.open(
      in: browser,
      probe: connect(server, token) + """
        const write = (former, text) => {
          const field = fields().find((field) => field.value === former);
          field.value = text;
          field.dispatchEvent(new Event("change"));
        };
        await until(() => values() === "2|Buy milk");
        report("shown", values());
        await until(() => status().startsWith("No server"));
        write("2", "3");
        write("Buy milk", "Buy oat milk");
        report("waiting", values());
        await until(() => status().startsWith("Live: 1 records, head 3."));
        report("applied", values());
        """)
    defer { tab.send(SIGKILL) }
    _ = try await pages.report("shown")
    try await server.kill()
    #expect(try await pages.report("waiting") == "3|Buy oat milk")
    try await server.start()
    #expect(try await pages.report("applied") == "3|Buy oat milk")
    try await device.exchange()
    #expect(try await device.rows() == [["a", "Buy oat milk", 3]])
  }

  @Test("a refused edit gives way to the server's value, with the reason, and the page goes on")
  func refusedEdit() async throws {
    let (server, _, device) = try await start()
    let tab = try pages.open(
      in: browser,
      probe: connect(server, try await server.token("reader")) + """
        await until(() => values() === "2|Buy milk");
        const field = fields().find((field) => field.value === "Buy milk");
        field.value = "Buy oat milk";
        field.dispatchEvent(new Event("change"));
        await until(() => status().startsWith("The server refuses: "));
        report("refused", [status(), values()]);
        await until(() => values() === "2|Buy bread");
        report("live", status());
        """)
    defer { tab.send(SIGKILL) }
    let refused = try await pages.report("refused")
    #expect(refused.contains("role") && refused.contains("\"2|Buy milk\""), "\(refused)")
    try await device.write("UPDATE notes SET body = 'Buy bread'")
    #expect(try await device.exchange().pushed == 1)
    // Nothing of the refused edit is in the history.
    #expect(try await pages.report("live").hasPrefix("Live: 1 records, head 2."))
    #expect(try await server.head(token: try await server.token("reader")) == 2)
  }

  @Test("the client has at most 100 lines, of at most 100 columns")
  func size() throws {
    let lines = try Project.text("Examples/Online/online.js").split(
      separator: "\n", omittingEmptySubsequences: false
    ).dropLast()
    #expect(lines.count <= 100)
    #expect(lines.filter { $0.count > 100 } == [])
  }

  @Test("without --allow-origin the browser refuses the same page, which other clients may do")
  func refused() async throws {
    let (server, token, _) = try await start(permitting: "https://app.example")
    let tab = try pages.open(
      in: browser,
      probe: connect(server, token) + """
        await until(() => status().includes("--allow-origin"));
        const plain = await fetch("\(server.url)/healthz").then(() => "answered", String);
        report("refused", [status(), fields().length, plain]);
        """)
    defer { tab.send(SIGKILL) }
    let refused = try await pages.report("refused")
    #expect(refused.contains("--allow-origin \(pages.origin)"))
    #expect(refused.hasSuffix(",0,\"TypeError: Failed to fetch\"]"), "\(refused)")
    let answer = try await Wire.send(
      .get, "\(server.url)/v1/spaces/\(Device.space)/changes",
      headers: ["Authorization": "Bearer \(token)", "Origin": pages.origin])
    #expect(answer.status == 200 && answer.text.contains("Buy milk"))
    #expect(answer.headers["Access-Control-Allow-Origin"] == nil)
  }

  @Test("a page of a declared origin reads problems, uploads content and keeps to its role")
  func problems() async throws {
    let server = try await Server.start(.embedded, "--allow-origin", pages.origin)
    let (admin, reader) = (try await server.token("admin"), try await server.token("reader"))
    _ = try await Device.joined(server.url, token: admin).exchange()
    // SHA-256 of "content".
    let hash = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    let tab = try pages.open(
      in: browser,
      probe: """
        const space = "\(server.url)/v1/spaces/\(Device.space)";
        const ask = async (path, token, options = {}) => {
          const headers = { Authorization: "Bearer " + token, ...options.headers };
          const answer = await fetch(space + path, { ...options, headers });
          const text = await answer.text();
          return [answer.status, text === "" ? null : JSON.parse(text).code ?? null,
            answer.headers.get("WWW-Authenticate"), answer.headers.get("Upload-Offset"),
            answer.headers.get("Allow")];
        };
        const put = (body, headers) => ({ method: "PUT", body, headers });
        report("answers", [
          await ask("", "nonsense"), await ask("/packets", "\(reader)", { method: "POST", body: "{}" }),
          await ask("/changes?cursor=x", "\(reader)"),
          await ask("/blobs/\(hash)", "\(admin)", put("cont", { "Content-Range": "bytes 0-3/7" })),
          await ask("/blobs/\(hash)", "\(admin)", { method: "HEAD" }),
          await ask("/blobs/\(hash)", "\(admin)", put("tent", { "Content-Range": "bytes 3-6/7" })),
        ]);
        const cookies = await fetch(space, { credentials: "include",
          headers: { Authorization: "Bearer \(reader)" } }).then(() => "answered", () => "refused");
        report("cookies", cookies);
        """)
    defer { tab.send(SIGKILL) }
    let answers = try JSONDecoder().decode(
      [[JSONScalar]].self, from: Data(try await pages.report("answers").utf8))
    #expect(
      answers.map { $0.map(\.text) } == [
        ["401", "unauthorized", "Bearer realm=\"ferry\", error=\"invalid_token\"", "", ""],
        ["403", "forbidden", "", "", ""], ["400", "invalid_cursor", "", "", ""],
        ["204", "", "", "4", ""], ["204", "", "", "4", ""],
        ["409", "upload_conflict", "", "4", ""],
      ])
    #expect(try await pages.report("cookies") == "refused")
  }

  /// A number, a text or null.
  private struct JSONScalar: Decodable {
    let text: String

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        text = ""
      } else if let number = try? value.decode(Int.self) {
        text = String(number)
      } else {
        text = try value.decode(String.self)
      }
    }
  }
}
