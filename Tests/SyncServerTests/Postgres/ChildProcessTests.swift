import FerryTestSupport
import Foundation
import Testing

@Suite("A child process", .hangLimit)
struct ChildProcessTests {
  private static let fifoVariable = "FERRY_TEST_CHILD_OWNER"
  private let shell = URL(filePath: "/bin/sh")

  @Test("a child process has the requested status, outputs, environment, directory and input")
  func finished() async throws {
    let directory = try TemporaryDirectory()
    let script = "cat; echo \"$WORD $1\"; pwd >&2; exit 7"
    let finished = try await ChildProcess.run(
      shell, ["-c", script, "name", "two words"], environment: ["WORD": "a word"],
      directory: directory.url, input: "line\n")
    #expect(finished.status == .exited(7))
    #expect(finished.output == "line\na word two words\n")
    #expect(finished.error == directory.url.path(percentEncoded: false).dropLast() + "\n")
  }

  @Test("a line is visible as soon as it is printed, and signals reach the program")
  func linesAndSignals() async throws {
    // `tail` prints "ready" itself: a shell that has forked and not yet started `tail` loses the
    // signal.
    let directory = try TemporaryDirectory()
    let ready = directory.file("ready").path
    try Data("ready\n".utf8).write(to: URL(filePath: ready))
    let script = "trap 'kill $!; echo caught; exit 0' TERM; tail -f \"$1\" & wait"
    let child = try ChildProcess(shell, ["-c", script, "name", ready])
    #expect(try await child.line { $0.hasPrefix("rea") } == "ready")
    #expect(child.endedWith == nil)
    child.send(SIGTERM)
    #expect(try await child.line { $0 == "caught" } == "caught")
    #expect(try await child.exitStatus() == .exited(0))
    child.send(SIGKILL)
  }

  @Test("a stopped program continues on SIGCONT, and ends when it is killed")
  func stopAndContinue() async throws {
    let child = try ChildProcess(URL(filePath: "/usr/bin/tail"), ["-f", "/dev/null"])
    child.send(SIGSTOP)
    child.send(SIGCONT)
    child.send(SIGKILL)
    #expect(try await child.exitStatus() == .killed(signal: SIGKILL))
  }

  @Test("a wait in vain ends with the program's output in the message")
  func failedWaits() async throws {
    let ended = await #expect(throws: TestSupportError.self) {
      let child = try ChildProcess(shell, ["-c", "echo last words"])
      return try await child.line { _ in false }
    }
    #expect(ended?.description.contains("last words") == true)
    let late = await #expect(throws: TestSupportError.self) {
      let child = try ChildProcess(URL(filePath: "/usr/bin/tail"), ["-f", "/dev/null"])
      return try await child.exitStatus(within: .milliseconds(10))
    }
    #expect(late?.description.contains("gave up") == true)
    #expect(throws: TestSupportError.self) { try ChildProcess(URL(filePath: "/no/such/program")) }
  }

  @Test("a child process is killed when its parent is killed")
  func diesWithParent() async throws {
    let directory = try TemporaryDirectory()
    let fifo = directory.file("fifo").path
    #expect(mkfifo(fifo, 0o600) == 0)
    // The grandchild is the pipe's only writer: reading ends when it is dead.
    let reader = try ChildProcess(URL(filePath: "/bin/cat"), [fifo])
    let owner = try ChildProcess(
      URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(),
      ["--testing-library", "swift-testing", "--filter", "ownsAChild"],
      environment: [Self.fifoVariable: fifo])
    #expect(try await reader.line { $0 == "alive" } == "alive")
    owner.send(SIGKILL)
    #expect(try await reader.exitStatus() == .exited(0))
  }

  @Test(
    "(The process for the test above.)",
    .enabled(if: ProcessInfo.processInfo.environment[fifoVariable] != nil))
  func ownsAChild() async throws {
    let fifo = ProcessInfo.processInfo.environment[Self.fifoVariable] ?? ""
    let child = try ChildProcess(
      shell, ["-c", "exec >\"$1\"; echo alive; exec tail -f /dev/null", "name", fifo])
    _ = try await child.exitStatus(within: .seconds(3600))
  }
}
