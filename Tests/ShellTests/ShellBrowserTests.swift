import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryShell

@Suite("Pages of a shell in a real browser", .serialized, .hangLimit)
struct ShellBrowserTests {
  /// A shell over a folder.
  private final class Stage: Sendable {
    let folder: TemporaryDirectory
    let shell: Shell
    private let seen: SharedEvents

    /// No time passes for pages: none of them is silent.
    private static let patient = ShellSurroundings(now: { .zero }) { duration in
      try await Task.sleep(for: duration == PageWatch.patience ? .seconds(3_600) : duration)
    }

    init(_ services: [Service] = [], _ surroundings: ShellSurroundings = Stage.patient) throws {
      folder = try TemporaryDirectory()
      let seen = SharedEvents()
      self.seen = seen
      shell = try Shell.start(
        DirectoryBundle(folder.url.path),
        services: ServiceRegistry(services, granting: ["probe"]), log: { seen.add($0) },
        limits: .init(), in: surroundings)
    }

    var events: [ShellEvent] { seen.all }

    /// Replaces the files of the bundle.
    func publish(_ version: Int, _ files: [String: String]) throws {
      for (name, text) in files { try Data(text.utf8).write(to: folder.file(name)) }
      let json =
        #"{"name":"probe","version":"\#(version)","services":[{"name":"probe"}]}"#
      try Data(json.utf8).write(to: folder.file(FolderDeclaration.fileName))
    }

    func failures() -> [String] {
      events.compactMap { event in
        guard case .failed(let version, let failure, let fallsBack) = event else { return nil }
        return "\(version.version) \(failure.kind.rawValue) \(fallsBack)"
      }
    }
  }

  private final class SharedEvents: Sendable {
    private let events = Mutex<[ShellEvent]>([])
    var all: [ShellEvent] { events.withLock { $0 } }
    func add(_ event: ShellEvent) { events.withLock { $0.append(event) } }
  }

  private static func page(_ title: String) -> String {
    """
    <!doctype html><html lang="en"><head><title>\(title)</title></head>
    <body><p id="out"></p><script type="module" src="app.js"></script></body></html>
    """
  }

  private final class SharedCount: Sendable {
    private let count = Atomic(0)
    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
  }

  @Test("a page calls, follows, cancels and uploads by ferry.js, and confirms that it works")
  func bridge() async throws {
    let slowBegun = SharedFlag("the slow call to begin")
    let slowEnded = SharedFlag("the slow call to end")
    let countEnded = SharedFlag("the count to end")
    let stage = try Stage([
      PageProbes.echo, PageProbes.fails, PageProbes.slow(slowBegun, slowEnded),
      PageProbes.awaits(slowBegun),
      PageProbes.count(countEnded),
    ])
    try stage.publish(1, ["index.html": Self.page("one"), "app.js": "await ferry.ready();"])
    let visit = try PageBrowser.visit(
      stage.shell.makeAddress(),
      // The bridge is there before the title.
      "return window.ferry && document.title ? document.title : null",
      #"return await ferry.call("probe.echo", {a: [1, "é", 9007199254740993n, new Uint8Array([1, 2])]})"#,
      #"return await ferry.call("probe.fails").catch((e) => [e instanceof FerryError, e.code, e.message])"#,
      """
      const ring = {};
      ring.ring = ring;
      const errors = [];
      for (const value of [ring, new Uint8Array(5000)]) {
        errors.push(await ferry.call("probe.echo", value).catch((e) => e.code));
        try { for await (const _ of ferry.watch("probe.echo", value)) {} }
        catch (error) { errors.push(error.code); }
      }
      return [await ferry.call("probe.none").catch((e) => e.code), ...errors];
      """,
      """
      const numbers = [];
      for await (const number of ferry.watch("probe.count")) {
        numbers.push(number);
        if (numbers.length === 3) break;
      }
      return numbers.every((n, i) => i === 0 || n > numbers[i - 1]);
      """,
      """
      const stop = new AbortController();
      const call = ferry.call("probe.slow", null, {signal: stop.signal}).catch((e) => e.code);
      await ferry.call("probe.awaits");
      stop.abort();
      return await call;
      """,
      """
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 50);
      try { for await (const n of ferry.watch("probe.count", null, {signal: stop.signal})) {} }
      catch (error) { return error.code; }
      """,
      #"return await ferry.watch("probe.echo")[Symbol.asyncIterator]().next().catch((e) => e.code)"#,
      """
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 64;
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      const {file} = await ferry.upload(blob);
      const image = new Image();
      image.src = file;
      await image.decode();
      const part = await fetch(file, {headers: {Range: "bytes=1-3"}});
      return [image.naturalWidth, part.status, await part.text()];
      """,
      "return [typeof ferry, document.querySelector('meta[name=ferry-page]') === null, Object.isFrozen(ferry)]",
      "return (await fetch('/favicon.ico')).status"
    )
    #expect(try await visit.result(of: 0) == "one")
    struct Echo: Decodable, Equatable { let a: [Either] }
    enum Either: Decodable, Equatable {
      case number(Int)
      case text(String)
      case object([String: String])
      init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if let number = try? value.decode(Int.self) {
          self = .number(number)
        } else if let text = try? value.decode(String.self) {
          self = .text(text)
        } else {
          self = .object(try value.decode([String: String].self))
        }
      }
    }
    let echo = try await visit.result(Echo.self, of: 1)
    #expect(
      echo.a == [
        .number(1), .text("é"), .object(["int": "9007199254740993"]), .object(["blob": "AQI="]),
      ])
    struct Mixed: Decodable {
      let values: [String]
      init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        var values: [String] = []
        while !list.isAtEnd {
          if let bool = try? list.decode(Bool.self) {
            values.append("\(bool)")
          } else if let number = try? list.decode(Int.self) {
            values.append("\(number)")
          } else {
            values.append(try list.decode(String.self))
          }
        }
        self.values = values
      }
    }
    let failed = try await visit.result(Mixed.self, of: 2).values
    #expect(failed == ["true", "sold_out", "there is none left"])
    #expect(
      try await visit.result(Mixed.self, of: 3).values == [
        "unknown_service", "invalid_argument", "invalid_argument", "too_large", "too_large",
      ])
    #expect(try await visit.result(Bool.self, of: 4))
    #expect(try await visit.result(of: 5) == "cancelled")
    #expect(try await visit.result(of: 6) == "cancelled")
    #expect(try await visit.result(of: 7) == "only_call")
    #expect(try await visit.result(Mixed.self, of: 8).values == ["64", "206", "PNG"])
    #expect(try await visit.result(Mixed.self, of: 9).values == ["object", "true", "true"])
    // A browser asks for the icon of the address by itself: no attack for the log.
    #expect(try await visit.result(Int.self, of: 10) == 204)
    try await visit.finish()
    #expect(!stage.events.contains { if case .refused = $0 { true } else { false } })
    // The program learns of the cancellation.
    try await slowEnded.wait()
    try await countEnded.wait()
    #expect(stage.events.contains { if case .confirmed = $0 { true } else { false } })
    #expect(stage.failures().isEmpty)
  }

  @Test("a version switches between two page loads, and never within one")
  func switching() async throws {
    let stage = try Stage()
    func files(_ version: Int) -> [String: String] {
      [
        "index.html": Self.page("version \(version)"),
        "app.js": "await ferry.ready(); document.body.dataset.state = 'ready';",
        "late.js": "export const version = \(version);",
      ]
    }
    try stage.publish(1, files(1))
    let mark = stage.folder.file(".published").path
    let ready = "return document.body?.dataset.state ? document.title : null"
    let visit = try PageBrowser.visit(
      stage.shell.makeAddress(), ready, "@wait \(mark)",
      "return (await import(location.href.replace('index.html', 'late.js'))).version", "@reload",
      "return document.title === 'version 2' && document.body.dataset.state ? document.title : null",
      "return (await import(location.href.replace('index.html', 'late.js'))).version")
    #expect(try await visit.result(of: 0) == "version 1")
    try stage.publish(2, files(2))
    try Data().write(to: URL(filePath: mark))
    #expect(try await visit.result(Int.self, of: 2) == 1)
    #expect(try await visit.result(of: 4) == "version 2")
    #expect(try await visit.result(Int.self, of: 5) == 2)
    try await visit.finish()
  }

  @Test(
    "a page that crashes, stays silent or violates its policy is replaced by the last good version",
    arguments: [
      ("throw new Error('broken')", "", "crashed"), ("import './none.js'", "", "crashed"),
      ("let = 1", "", "crashed"),
      ("(async () => { for await (const _ of ferry.watch('probe.silent')) {} })()", "", "silent"),
      ("await ferry.ready(); fetch('http://127.0.0.1:9/')", "", "violated"),
      ("document.body.innerHTML += '<p style=\"color:red\">x</p>'", "", "violated"),
      // The browser reports it before the page has a stream.
      ("await ferry.ready()", "style=\"color:red\"", "violated"),
    ])
  func fallback(script: String, attribute: String, kind: String) async throws {
    // The ten seconds of the second load pass at once, if the page has to stay silent.
    let (loads, isOver) = (SharedCount(), SharedFlag("the end of the page's time"))
    let isFollowed = SharedFlag("the page to have its stream")
    let surroundings = ShellSurroundings(now: { .seconds(isOver.isSet ? 11 : 0) }) { duration in
      guard duration == PageWatch.patience, loads.next() == 2, kind == "silent" else {
        return try await Task.sleep(for: .seconds(3_600))
      }
      // Until then the page has to have a stream.
      try await isFollowed.wait()
      isOver.set()
    }
    let stage = try Stage([PageProbes.silent(isFollowed)], surroundings)
    let works = "await ferry.ready(); document.body.dataset.state = 'ready';"
    try stage.publish(1, ["index.html": Self.page("good"), "app.js": works])
    let mark = stage.folder.file(".published").path
    let visit = try PageBrowser.visit(
      stage.shell.makeAddress(), "return document.body?.dataset.state ?? null", "@wait \(mark)",
      "document.body.dataset.state = ''; return 'left'", "@reload",
      "return document.title === 'good' && document.body.dataset.state || null")
    #expect(try await visit.result(of: 0) == "ready")
    let page = Self.page("broken").replacingOccurrences(of: "<html ", with: "<html \(attribute) ")
    try stage.publish(2, ["index.html": page, "app.js": script])
    try Data().write(to: URL(filePath: mark))
    #expect(try await visit.result(of: 4) == "ready")
    try await visit.finish()
    #expect(stage.failures() == ["2 \(kind) true"])
  }

  @Test("a version whose tab crashes twice before it is ready gives way to the last good one")
  func crashedTab() async throws {
    let stage = try Stage()
    let works = "await ferry.ready(); document.body.dataset.state = 'ready';"
    try stage.publish(1, ["index.html": Self.page("good"), "app.js": works])
    let marks = ["one", "two", "three"].map { stage.folder.file(".\($0)").path }
    let shown = "return document.title === 'busy' && window.ferry ? document.title : null"
    let visit = try PageBrowser.visit(
      stage.shell.makeAddress(), "return document.body?.dataset.state ?? null",
      "@wait \(marks[0])", "@reload", shown, "@crash", "@wait \(marks[1])", "@reload", shown,
      "@crash", "@wait \(marks[2])", "@reload",
      "return document.title === 'good' && document.body.dataset.state || null")
    func goOn(_ mark: Int) throws { try Data().write(to: URL(filePath: marks[mark])) }
    #expect(try await visit.result(of: 0) == "ready")
    try stage.publish(
      2, ["index.html": Self.page("busy"), "app.js": "await new Promise(() => {});"])
    try goOn(0)
    #expect(try await visit.result(of: 4) == "crashed")
    // One crash proves nothing: the next load shows the version again.
    try goOn(1)
    #expect(try await visit.result(of: 7) == "busy")
    #expect(stage.failures().isEmpty)
    #expect(try await visit.result(of: 8) == "crashed")
    try await eventually("the failure of version 2", from: visit.process) {
      !stage.failures().isEmpty
    }
    try goOn(2)
    #expect(try await visit.result(of: 11) == "ready")
    try await visit.finish()
    #expect(stage.failures() == ["2 crashed true"])
  }

  @Test("a page of another origin reaches nothing")
  func anotherOrigin() async throws {
    let stage = try Stage([PageProbes.echo])
    let works = "await ferry.ready(); document.body.dataset.address = location.href;"
    try stage.publish(1, ["index.html": Self.page("good"), "app.js": works])
    let shell = stage.shell.port
    let evil = try EvilServer { port in
      // It even knows the address of the page, which it normally cannot.
      """
      <!doctype html><title>evil</title><script>
      const target = new URLSearchParams(location.hash.slice(1)).get("target");
      const base = target && new URL(".", target).href;
      const attempt = async (work) => { try { return String(await work()); } catch { return "failed"; } };
      const load = (tag, address) => new Promise((done) => {
        const element = document.createElement(tag);
        element.onload = () => done(element.contentDocument ? "readable" : "loaded");
        element.onerror = () => done("failed");
        element.src = address;
        document.head.append(element);
        if (tag === "iframe") setTimeout(() => done("silent"), 1500);
      });
      const post = (address, mode) => fetch(address + "-/call", { method: "POST", mode,
        credentials: "include", headers: { "Content-Type": "text/plain" },
        body: JSON.stringify({ service: "probe.echo", argument: "stolen" }) }).then((r) => r.text());
      window.attack = async () => ({
        cors: await attempt(() => fetch(target, { credentials: "include" }).then((r) => r.text())),
        call: await attempt(() => post(base, "cors")),
        blind: await attempt(() => post(base, "no-cors")),
        script: await attempt(() => load("script", base + "app.js")),
        bridge: await attempt(() => load("script", base + "-/ferry.js")),
        frame: await attempt(() => load("iframe", target)),
        image: await attempt(() => load("img", base + "picture.png")),
        rebinding: await attempt(() => post(base.replace("127.0.0.1", "localhost"), "no-cors")),
        globals: typeof ferry,
      });
      </script>
      """
    }
    let visit = try PageBrowser.visit(
      stage.shell.makeAddress(), "return document.body?.dataset.address ?? null",
      "location = '\(evil.address)#target=' + encodeURIComponent(location.href); return 'left'",
      "return window.attack && location.port === '\(evil.port)' ? await attack() : null")
    #expect(try await visit.result(of: 0).contains(":\(shell)/"))
    let found = try await visit.result([String: String].self, of: 2)
    try await visit.finish()
    let expected = [
      "cors": "failed", "call": "failed", "script": "failed", "bridge": "failed",
      "image": "failed", "globals": "undefined",
    ]
    for (name, value) in expected { #expect(found[name] == value, "\(name)") }
    // An opaque answer has no text.
    for name in ["blind", "rebinding"] { #expect(["", "failed"].contains(found[name]), "\(name)") }
    #expect(found["frame"] != "readable")
    let reasons = stage.events.compactMap { event in
      if case .refused(_, let reason) = event { reason } else { nil }
    }
    #expect(reasons.contains("another origin"))
    #expect(reasons.contains("another host"))
    #expect(reasons.contains("not a page of its own"))
    #expect(reasons.contains("another site"))
  }
}
