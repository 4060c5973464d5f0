import FerryTestSupport
import Foundation
import Testing

@testable import FerryLaboratory

@Suite("Waits of tests", .hangLimit)
struct EventuallyTests {
  private let shell = URL(filePath: "/bin/sh")

  @Test("a wait for a process ends with it, and reports the wait, the status and the output")
  func endedProcess() async throws {
    let child = try ChildProcess(shell, ["-c", "echo last words; exit 3"])
    let error = await #expect(throws: TestSupportError.self) {
      try await eventually("the harvest", from: child) { false }
    }
    let text = error?.description ?? ""
    for part in ["waited for the harvest, but sh has ended with exited(3)", "last words"] {
      #expect(text.contains(part), "\(text)")
    }
  }

  @Test("an event that a process has made before its end is found")
  func lastDeed() async throws {
    let child = try ChildProcess(shell, ["-c", "echo done"])
    _ = try await child.exitStatus()
    try await eventually("the output", from: child) { child.output == "done\n" }
  }

  @Test("a wait that takes too long reports what it waited for")
  func limit() async throws {
    let error = await #expect(throws: TestSupportError.self) {
      try await eventually("the harvest", within: .zero) { false }
    }
    #expect(error?.description.contains("gave up waiting for the harvest") == true)
  }

  @Test("the error of a probe ends the wait, and so does the end of its task")
  func interrupted() async throws {
    struct Fault: Error {}
    await #expect(throws: Fault.self) { try await eventually("it") { throw Fault() } }
    let task = Task { try await eventually("it") { false } }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("a line is not waited for once its process has ended, though a child holds the streams")
  func orphan() async throws {
    let child = try ChildProcess(shell, ["-c", "sleep 600 & echo $!; exit 5"])
    let orphan = try #require(pid_t(try await child.line { _ in true }))
    defer { kill(orphan, SIGKILL) }
    let error = await #expect(throws: TestSupportError.self) {
      try await child.line { $0 == "more" }
    }
    #expect(error?.description.contains("ended with exited(5)") == true)
    #expect(child.output == "\(orphan)\n" && kill(orphan, 0) == 0)
  }

  @Test("the output of an ended process is whole when its end is known")
  func wholeOutput() async throws {
    for _ in 0..<20 {
      let child = try ChildProcess(shell, ["-c", "sleep 600 & echo $!; seq 9000; exit 0"])
      defer { Int32(child.output.prefix { $0 != "\n" }).map { _ = kill($0, SIGKILL) } }
      try await eventually("the end") { child.endedWith != nil }
      #expect(child.output.hasSuffix("\n8999\n9000\n"))
    }
  }

  @Test("started programs get none of the user's own settings, and those of the test")
  func environment() {
    let cleaned = ChildEnvironment.cleaned([
      "FERRY_TOKEN": "t", "FERRY_TEST_BROWSER": "b", "PGSSLMODE": "require", "https_proxy": "p",
      "NO_PROXY": "*", "LC_ALL": "C", "LANG": "C", "TZ": "Asia/Kathmandu", "XDG_STATE_HOME": "/s",
      "HOME": "/h", "PATH": "/bin", "TMPDIR": "/t", "COLUMNS": "20",
    ])
    #expect(
      cleaned == [
        "FERRY_TEST_BROWSER": "b", "PATH": "/bin", "TMPDIR": "/t", "LANG": "C.UTF-8", "TZ": "UTC",
      ])
  }

  @Test("started programs have a home of the tests' own, and the programs of one PostgreSQL first")
  func home() async throws {
    let found = try await ChildProcess.run(shell, ["-c", #"echo "$HOME" && command -v pg_dump"#])
    let lines = found.output.split(separator: "\n").map(String.init)
    let users = ProcessInfo.processInfo.environment["HOME"]
    try #require(lines.count == 2)
    #expect(lines[0] != users && lines[0].contains("ferry-home"))
    #expect(lines[1] == "\(try PostgresInstallation.find().directory)/pg_dump")
  }
}
