import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryPatches

/// Scripts in real processes of ferry-patch.
@Suite(
  "The host of patches", .enabled(if: BuiltHost.isBuilt, BuiltHost.hint), .hangLimit)
struct HostTests {
  /// The time is long, so only endless scripts use it up.
  private static let patient: PatchLimits = {
    var limits = PatchLimits()
    limits.time = .hangLimit
    return limits
  }()

  private func run(
    _ script: String, _ input: String = "null", services: Set<String> = [],
    limits: PatchLimits = patient,
    calling service: @escaping ServiceCaller = { _, _ in Array("null".utf8) }
  ) async -> Result<String, PatchFailure> {
    let request = PatchRequest(
      script: script, input: Array(input.utf8), services: services, limits: limits)
    return await ProcessRunner(PatchHost(path: BuiltHost.path)).run(request, services: service)
      .text
  }

  @Test("a script computes with its input, at once or later")
  func computes() async {
    for script in [
      "function patch(input) { return { sum: input.a + input.b } }",
      "const patch = ({ a, b }) => ({ sum: a + b })",
      "async function patch(input) { await null; return { sum: input.a + input.b } }",
      "const add = (a, b) => a + b; let patch = async i => ({ sum: await add(i.a, i.b) })",
    ] {
      #expect(await run(script, #"{"a":40,"b":2}"#) == .success(#"{"sum":42}"#), "\(script)")
    }
    #expect(await run("function patch() {}") == .success("null"))
    let text = "\"é\u{2028}\\n\\u0000\""
    #expect(await run("function patch(i) { return i }", text) == .success(text))
  }

  @Test("a script calls services one after another and several at once")
  func services() async {
    let script = """
      async function patch(input, call) {
        const one = await call("add", [1, 2]);
        const more = await Promise.all([3, 4, 5].map(n => call("add", [one, n])));
        try { await call("fail", null) } catch (error) { more.push(error.message) }
        return more;
      }
      """
    let result = await run(script, services: ["add", "fail"]) { name, arguments in
      guard name == "add" else { throw PatchFailure.threw("no luck") }
      let numbers = try JSONDecoder().decode([Int].self, from: Data(arguments))
      return Array("\(numbers.reduce(0, +))".utf8)
    }
    #expect(result == .success(#"[6,7,8,"the patch threw “no luck”"]"#))
  }

  @Test("a service that is not granted is never called")
  func notGranted() async {
    let calls = Mutex([String]())
    let script = """
      async function patch(input, call) {
        try { return await call("files.read", "/etc/passwd") } catch (error) { return error.message }
      }
      """
    let result = await run(script, services: ["clock"]) { name, _ in
      calls.withLock { $0.append(name) }
      return Array("0".utf8)
    }
    #expect(result == .success(#""service files.read is not granted""#))
    #expect(calls.withLock(\.self) == [])
  }

  @Test("errors of every kind are failures with a text")
  func errors() async {
    for (script, text) in [
      ("function patch() { throw new Error('no') }", "Error: no"),
      ("async function patch() { throw 'no' }", "no"),
      ("function patch() { return null.x }", "null"), ("function patch( {", "SyntaxError"),
      ("const other = 1", "patch"), ("const patch = 5", "no function `patch`"),
      ("throw new Error('early')", "early"),
      ("function patch() { const a = {}; a.a = a; return a }", "cyclic"),
      ("function patch() { return 1n }", "BigInt"),
      ("function patch() { return { toJSON() { throw new Error('json') } } }", "json"),
      ("function patch() { throw { toString() { throw 1 } } }", "an error without a text"),
      ("function patch() { return new Promise(() => {}) }", "never returns"),
      ("async function patch(i, call) { await call(5) }", "needs the name"),
    ] {
      guard case .failure(.threw(let thrown)) = await run(script) else {
        Issue.record("\(script) did not throw")
        continue
      }
      #expect(thrown.contains(text), "\(script): \(thrown)")
    }
  }

  @Test("a script without an end is stopped when its time is used up")
  func endless() async {
    var limits = PatchLimits()
    limits.time = .milliseconds(200)
    for script in [
      "function patch() { for (;;); }", "for (;;);",
      "async function patch() { for (;;) await null }",
      "function patch() { return { toJSON() { for (;;); } } }",
      "function patch() { throw { toString() { for (;;); } } }",
      "function patch() { /(a+)+$/.test('a'.repeat(40) + 'b'); for (;;); }",
      "async function patch(i, call) { await call('wait', 0) }",
    ] {
      let result = await run(
        script, services: ["wait"], limits: limits
      ) { _, _ in
        try await Task.sleep(for: .seconds(600))
        return []
      }
      #expect(result == .failure(.timeUsedUp), "\(script)")
    }
  }

  @Test("a script that takes more memory than it may is stopped")
  func memory() async {
    for script in [
      "function patch() { const a = []; for (;;) a.push(new Array(1000).fill(a.length + 0.5)) }",
      "function patch() { const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1)) }",
      "function patch() { let s = 'x'; for (;;) { s += s; s.indexOf('y'); eval('1') } }",
      "function patch() { const m = new Map(); for (let i = 0; ; i++) m.set(i, { i }) }",
    ] {
      switch await run(script) {
      case .failure(.memoryUsedUp): break
      // The engine itself ends a too long string or array.
      case .failure(.threw(let text)) where text.contains("Out of memory"): break
      case let other: Issue.record("\(script): \(other)")
      }
    }
    // A bomb in a process leaves the app as it was.
    #expect(await run("function patch() { return 1 }") == .success("1"))
  }

  @Test("evaluating huge texts, and recursion without an end, are failures")
  func depth() async {
    for script in [
      "function patch() { return patch() + 1 }",
      "function patch() { eval('('.repeat(1 << 20) + '1' + ')'.repeat(1 << 20)) }",
      "function patch() { new Function('return ' + '['.repeat(1 << 20))() }",
      "function patch() { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a }",
      "function patch() { return JSON.parse('['.repeat(1 << 20)) }",
      "function patch() { return 'x'.repeat(2 ** 31 - 2).replace(/x/g, 'yy') }",
    ] {
      guard case .failure = await run(script) else {
        Issue.record("\(script) returned")
        continue
      }
    }
  }

  @Test("a flood of results, of service calls or of arguments ends the call")
  func floods() async {
    let large = "function patch() { return 'x'.repeat(2e6) }"
    #expect(await run(large) == .failure(.outputTooLarge))
    let arguments = "function patch(i, call) { for (;;) call('clock', 'x'.repeat(1e5)) }"
    #expect(await run(arguments, services: ["clock"]) == .failure(.outputTooLarge))
    let calls = "async function patch(i, call) { for (;;) await call('clock') }"
    #expect(await run(calls, services: ["clock"]) == .failure(.tooManyServiceCalls))
  }

  @Test("a script that changes the language's own objects changes only its own result")
  func pollution() async {
    let forged = #"}\n{"result":666"#
    for (script, expected) in [
      ("JSON.stringify = () => '\(forged)'; function patch() { return { a: 1 } }", #"{"a":1}"#),
      (
        "Object.prototype.toJSON = () => '\(forged)'; function patch() { return { a: 1 } }",
        #""}\n{\"result\":666""#
      ),
      (
        "Array.prototype.toJSON = Object.prototype.toJSON = undefined;"
          + " Object.defineProperty(Array.prototype, 0, { set() { throw 1 } });"
          + " function patch() { return { a: 1 } }", #"{"a":1}"#
      ),
      (
        "Promise.prototype.then = () => { throw 1 }; Promise.resolve = () => 5;"
          + " async function patch() { return { a: 1 } }", #"{"a":1}"#
      ),
      ("globalThis.Promise = null; async function patch() { return 1 }", "1"),
      ("Object.prototype.result = 666; function patch() { return {} }", "{}"),
      (
        "function patch(i) { return [({}).x === undefined, Object.keys(i)] }",
        #"[true,["__proto__"]]"#
      ),
    ] {
      #expect(
        await run(script, #"{"__proto__":{"x":1}}"#) == .success(expected), "\(script)")
    }
    let thrown = await run("function patch() { throw '\(forged)' }")
    #expect(thrown == .failure(.threw(#"} {"result":666"#)))
    // Half of a character is no text.
    guard case .failure = await run("function patch() { return '\\ud800' }") else {
      Issue.record("half a character was accepted")
      return
    }
  }

  @Test("a script finds no door to the system, and no trace of another call")
  func globals() async {
    let names = [
      "process", "require", "module", "fetch", "XMLHttpRequest", "WebSocket", "Worker", "load",
      "read", "readFile", "print", "gc", "quit", "System", "imports", "importScripts", "Deno",
      "WebAssembly", "setTimeout", "document", "window", "$vm", "run", "openFile",
    ]
    let script = """
      function patch(names) {
        const found = names.filter(name => typeof globalThis[name] !== "undefined");
        if (globalThis.trace) found.push("trace");
        globalThis.trace = Object.prototype.trace = 1;
        return found;
      }
      """
    let input = "[\"" + names.joined(separator: "\",\"") + "\"]"
    for _ in 1...2 { #expect(await run(script, input) == .success("[]")) }
    guard case .failure = await run("async function patch() { await import('/etc/passwd') }")
    else {
      Issue.record("a module was imported")
      return
    }
  }

  @Test("the process cannot open, connect, signal or start anything")
  func walls() async throws {
    // A descriptor inherited by every child.
    let kept = open("/dev/null", O_RDWR)
    defer { close(kept) }
    let probe = try await ChildProcess.run(
      URL(filePath: BuiltHost.path), ["probe"], environment: ["SECRET": "x"])
    #expect(probe.status == .exited(0))
    let walls = try JSONDecoder().decode([String: Bool].self, from: Data(probe.output.utf8))
    #expect(
      walls.keys.sorted() == [
        "descriptors", "environment", "fork", "internet", "localSocket", "machineCode", "program",
        "readFile", "signal", "writeFile",
      ])
    #expect(walls.values.allSatisfy { $0 })
  }

  @Test("an author tries a script from a file, and types the answers of services")
  func tries() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-try")
    let script = "async function patch(n, call) { return n + await call('add', n) }"
    try Data(script.utf8).write(to: directory.file("add.js"))
    let host = URL(filePath: BuiltHost.path)
    let path = directory.file("add.js").path
    let tried = try await ChildProcess.run(host, ["try", path, "40"], input: "[1,true,2]\n")
    #expect(
      tried.output == #"{"call":1,"service":"add","arguments":40}"# + "\n{\"result\":42}\n")
    #expect(tried.status == .exited(0))
    let failed = try await ChildProcess.run(host, ["try", path], input: "[1,false,\"no\"]\n")
    #expect(failed.output.hasSuffix("{\"thrown\":\"Error: no\"}\n"))
    #expect(failed.status == .exited(1))
    for arguments in [
      ["try", path + ".absent"], ["try"], ["run", "0", "1"], ["run", "x", "y"], [],
    ] {
      let misused = try await ChildProcess.run(host, arguments)
      #expect(misused.status == .exited(2) && !misused.error.isEmpty, "\(arguments)")
    }
  }

  @Test(
    "a trial that ends without a result states the reason",
    arguments: [
      (
        "'use strict'; const all = []; function patch() { for (;;) all.push(new Array(9999).fill(1.5)) }",
        3, "used more memory than a patch may have"
      ),
      (
        "async function patch(n, call) { return call('add', n) }", 6,
        "the input ended while the script waited"
      ),
      ("function patch() { return 'x'.repeat(1048570) }", 7, "wrote more than 1 MiB"),
      (
        "async function patch(n, call) { for (;;) call('add', 'x'.repeat(100000)) }", 7,
        "wrote more than 1 MiB"
      ),
    ])
  func failedTrials(script: String, status: Int32, reason: String) async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-try")
    try Data(script.utf8).write(to: directory.file("patch.js"))
    let tried = try await ChildProcess.run(
      URL(filePath: BuiltHost.path), ["try", directory.file("patch.js").path], input: "")
    #expect(tried.status == .exited(status))
    #expect(
      tried.error.hasPrefix("ferry-patch: ") && tried.error.contains(reason), "\(tried.error)")
    #expect(tried.error.split(separator: "\n").count == 1 && tried.output.utf8.count <= 1 << 20)
  }

  @Test("the output of a trial may be as large as in an app, and a wrong answer is named")
  func trialBounds() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-try")
    let path = directory.file("patch.js").path
    let host = URL(filePath: BuiltHost.path)
    // With {"result":""} and the end of the line, 1 MiB to the byte.
    try Data("function patch() { return 'x'.repeat(1048576 - 14) }".utf8)
      .write(to: directory.file("patch.js"))
    let whole = try await ChildProcess.run(host, ["try", path])
    #expect(whole.status == .exited(0) && whole.output.utf8.count == 1 << 20, "\(whole.error)")
    try Data("async function patch(n, call) { return call('add', n) }".utf8)
      .write(to: directory.file("patch.js"))
    for line in ["7", "[2,true,1]", "no"] {
      let wrong = try await ChildProcess.run(host, ["try", path], input: line + "\n")
      #expect(wrong.status == .exited(6) && wrong.error.hasPrefix("ferry-patch: "), "\(line)")
    }
  }

  @Test("many calls at once do not disturb each other")
  func parallel() async {
    let script = """
      async function patch(input, call) {
        const a = await call("same", input);
        return a + await call("same", input);
      }
      """
    let results = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<12 {
        group.addTask {
          await run(script, "\(number)", services: ["same"]) { _, arguments in arguments }
            == .success("\(number * 2)")
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count == 12 && results.allSatisfy { $0 })
  }
}
