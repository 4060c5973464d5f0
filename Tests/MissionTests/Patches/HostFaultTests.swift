import FerryPlatform
import FerryTestSupport
import Foundation
import Testing

@testable import FerryPatches

/// Hosts that are absent, killed, or taken over by their script: programs of the tests play them.
@Suite("Hosts that fail", .hangLimit)
struct HostFaultTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(prefix: "ferry-hosts") }

  /// Makes a program of a script.
  ///
  /// Another process writes it. If this one did, a process started by another test meanwhile would
  /// inherit the open file. The system starts no program that is open for writing (ETXTBSY).
  private func host(_ script: String) async throws -> PatchHost {
    let path = directory.file("host-\(UUID().uuidString)").path
    let written = try await ChildProcess.run(
      URL(filePath: "/bin/sh"), ["-c", "cat > '\(path)' && chmod 700 '\(path)'"],
      input: "#!/bin/sh\n\(script)\n")
    try #require(written.status == .exited(0), "\(written.error)")
    return PatchHost(path: path)
  }

  private func run(
    _ host: PatchHost, time: Duration = .seconds(60)
  ) async -> Result<String, PatchFailure> {
    var limits = PatchLimits()
    limits.time = time
    let request = PatchRequest(
      script: "function patch() {}", input: Array("null".utf8), services: [], limits: limits)
    return await ProcessRunner(host).run(request) { _, _ in [] }.text
  }

  @Test("a host that is missing, or is no program, is reported as missing")
  func missing() async throws {
    for path in ["/nowhere/ferry-patch", "/etc/passwd", "/tmp", ""] {
      guard case .failure(.hostMissing) = await run(PatchHost(path: path)) else {
        Issue.record("\(path) was started")
        continue
      }
    }
  }

  @Test("a host that is killed half-way is a failure")
  func killed() async throws {
    let result = await run(try await host("read script; printf '{\"resu'; kill -9 $$"))
    #expect(result == .failure(.hostEnded("signal 9")))
    let ended = await run(try await host("read script; exit 0"))
    #expect(ended == .failure(.hostEnded("exit code 0")))
  }

  @Test("a host gets no environment")
  func environment() async throws {
    try #require(ProcessInfo.processInfo.environment["HOME"] != nil)
    let host = try await host(#"printf '{"result":"%s"}\n' "$HOME""#)
    #expect(await run(host) == .success(#""""#))
  }

  @Test("a host that floods, lies or hangs is stopped")
  func hostile() async throws {
    guard case .failure(.hostEnded) = await run(try await host("exec yes")) else {
      Issue.record("lines that are none were accepted")
      return
    }
    let flood = await run(try await host("while :; do printf '                '; done"))
    #expect(flood == .failure(.outputTooLarge))
    let silent = try await host("exec sleep 600")
    #expect(await run(silent, time: .milliseconds(100)) == .failure(.timeUsedUp))
    // It closes the conversation, and lives on.
    let closed = try await host("exec 0<&- 1>&-; exec sleep 600")
    guard case .failure = await run(closed, time: .milliseconds(100)) else {
      Issue.record("a closed conversation succeeded")
      return
    }
  }

  @Test("no process is left when a call ends, however it ends")
  func noProcessLeft() async throws {
    let pids = directory.file("pids").path
    let silent = try await host("echo $$ >> \(pids); exec sleep 600")
    #expect(await run(silent, time: .seconds(10)) == .failure(.timeUsedUp))
    let quick = try await host("echo $$ >> \(pids); printf '{\"result\":1}\\n'; exec sleep 600")
    #expect(await run(quick) == .success("1"))
    let started = try String(contentsOfFile: pids, encoding: .utf8).split(separator: "\n")
    #expect(started.count == 2)
    for pid in started.compactMap({ pid_t($0) }) {
      #expect(kill(pid, 0) == -1 && errno == ESRCH, "\(pid) still runs")
    }
  }

  @Test("a cancelled call stops its host, and counts neither for nor against the patch")
  func cancelled() async throws {
    let pids = directory.file("pid").path
    let silent = try await host("echo $$ > \(pids).new; mv \(pids).new \(pids); exec sleep 600")
    let runner = ProcessRunner(silent)
    var limits = PatchLimits()
    limits.time = .seconds(600)
    let behaviours = try await Behaviours.open(
      app: PatchFixture.app, version: PatchFixture.version,
      trusting: [try PatchFixture.publicKey()], ledger: directory.file("ledger").path,
      limits: limits, runner: runner, now: { PatchFixture.now })
    let double = await behaviours.register("double") { (number: Int) in number * 2 }
    try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    let call = Task { try await double(21) }
    let text = try await eventually("the host to start") {
      try? String(contentsOfFile: pids, encoding: .utf8)
    }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    let pid = try #require(pid_t(text.dropLast()))
    #expect(kill(pid, 0) == -1 && errno == ESRCH)
    #expect(await behaviours.fallbacks.isEmpty)
    #expect(await behaviours.status.map(\.failedCalls) == [0])
  }

  @Test(
    "a real host that is killed while its script waits is a failure, and the native code runs",
    .enabled(if: BuiltHost.isBuilt, BuiltHost.hint))
  func killedForReal() async throws {
    var limits = PatchLimits()
    limits.time = .seconds(60)
    limits.memoryBytes += Int.random(in: 1...1_000_000)
    let mark = "\(limits.memoryBytes)"
    let behaviours = try await Behaviours.open(
      app: PatchFixture.app, version: PatchFixture.version,
      trusting: [try PatchFixture.publicKey()], ledger: directory.file("ledger").path,
      limits: limits, runner: ProcessRunner(PatchHost(path: BuiltHost.path)),
      now: { PatchFixture.now })
    // The service finds the process by its arguments, and kills it.
    let killer = PatchService("kill") { (_: Int) in
      for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
        guard let pid = pid_t(name),
          let line = FileManager.default.contents(atPath: "/proc/\(name)/cmdline")
        else { continue }
        let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        if words.contains(mark) { kill(pid, SIGKILL) }
      }
      return 0
    }
    let double = await behaviours.register("double", granting: [killer]) { (number: Int) in
      number * 2
    }
    let document = PatchFixture.document(
      "async function patch(input, call) { return await call('kill', 0) }", services: ["kill"])
    try await behaviours.load([PatchFixture.signed(document)])
    #expect(try await double(21) == 42)
    #expect(await behaviours.fallbacks.map(\.reason) == [.hostEnded("signal 9")])
  }
}
