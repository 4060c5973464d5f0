import Foundation
import Synchronization

/// The program to start, and the descriptors.
struct SpawnRequest: Sendable {
  var executable: String
  var arguments: [String]
  /// Added to ``ChildEnvironment``.
  var environment: [String: String] = [:]
  var directory: String?
  /// Open descriptors; nil is /dev/null. They stay the caller's to close.
  var input: Int32?
  var output: Int32?
  var error: Int32?
  /// A separate session, out of reach of the terminal's signals.
  var ownSession = false
  /// Sends it SIGKILL when this process ends for any reason (Linux only).
  var diesWithParent = true
}

/// Starts processes, all from one endless thread.
///
/// Linux sends the parent-death signal when the *thread* that started the child ends, and Swift's
/// pool threads come and go.
enum ProcessSpawner {
  private static let spawning = Mutex(())
  private static let queue: SpawnQueue = {
    let queue = SpawnQueue()
    let thread = Thread { queue.serve() }
    thread.name = "test-spawner"
    thread.start()
    return queue
  }()

  /// Starts a process and returns the id. The executable is a path. The caller must wait for the
  /// process.
  static func spawn(_ request: SpawnRequest) throws -> pid_t {
    guard access(request.executable, X_OK) == 0 else {
      throw TestSupportError.posix("cannot start \(request.executable)")
    }
    return try queue.submit { try withoutSpawning { try posixSpawn(request) } }
  }

  /// Runs `body` while no process is being started, so a descriptor opened by it can be marked
  /// close-on-exec first.
  static func withoutSpawning<R>(_ body: () throws -> sending R) rethrows -> sending R {
    try spawning.withLock { _ in try body() }
  }

  /// Runs a program to the end, and returns the exit status (128 + signal if killed) and the
  /// output. It blocks.
  static func runToEnd(_ request: SpawnRequest) throws -> (status: Int32, output: String) {
    let scratch = try TemporaryDirectory()
    let log = scratch.file("output")
    let descriptor = open(log.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw TestSupportError.posix("cannot open \(log.path)") }
    defer { close(descriptor) }
    var request = request
    request.output = descriptor
    request.error = descriptor
    let status = waitForEnd(of: try spawn(request))
    return (status, try String(contentsOf: log, encoding: .utf8))
  }

  /// Blocks until the process ends.
  @discardableResult
  static func waitForEnd(of process: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
  }

  private static func posixSpawn(_ request: SpawnRequest) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in [request.input, request.output, request.error].enumerated() {
      let target = Int32(target)
      if let source {
        posix_spawn_file_actions_adddup2(&actions, source, target)
      } else {
        posix_spawn_file_actions_addopen(&actions, target, "/dev/null", O_RDWR, 0)
      }
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    setCleanSignals(&attributes)

    let command = request.commandLine
    let environment = ChildEnvironment.shared
      .merging(request.environment) { $1 }.map { "\($0)=\($1)" }
    var process: pid_t = 0
    let code = withCStrings(command) { arguments in
      withCStrings(environment) { environment in
        posix_spawn(&process, command[0], &actions, &attributes, arguments, environment)
      }
    }
    guard code == 0 else { throw TestSupportError.posix("cannot start \(command[0])", code) }
    return process
  }

  /// Makes the child start with no signal blocked and none ignored.
  private static func setCleanSignals(_ attributes: inout posix_spawnattr_t) {
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for signal in [SIGPIPE, SIGTERM, SIGINT, SIGHUP] { sigaddset(&defaults, signal) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    let flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
    posix_spawnattr_setflags(&attributes, Int16(flags))
  }

  /// Lends a NULL-terminated array of C strings.
  private static func withCStrings<R>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R
  ) -> R {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
  }
}

extension SpawnRequest {
  /// The program behind the small ones that prepare its surroundings; each becomes the next by
  /// exec, so the process id is the program's.
  fileprivate var commandLine: [String] {
    var command = [executable] + arguments
    if let directory { command = ["/usr/bin/env", "-C", directory] + command }
    let setpriv = "/usr/bin/setpriv"
    if diesWithParent, access(setpriv, X_OK) == 0 {
      command = [setpriv, "--pdeathsig", "KILL", "--"] + command
    }
    return ownSession ? ["/usr/bin/setsid"] + command : command
  }
}

/// Passes work to the spawner's thread and waits for the result.
private final class SpawnQueue: Sendable {
  private let jobs = Mutex([@Sendable () -> Void]())
  private let wakeups = DispatchSemaphore(value: 0)

  func serve() {
    while true {
      wakeups.wait()
      jobs.withLock { $0.removeFirst() }()
    }
  }

  func submit(_ body: @escaping @Sendable () throws -> pid_t) throws -> pid_t {
    let answer = SpawnAnswer()
    let done = DispatchSemaphore(value: 0)
    jobs.withLock {
      $0.append {
        answer.set(Result(catching: body))
        done.signal()
      }
    }
    wakeups.signal()
    done.wait()
    return try answer.get()
  }
}

/// The result of a job under way.
private final class SpawnAnswer: Sendable {
  private let result = Mutex<Result<pid_t, any Error>?>(nil)

  func set(_ value: Result<pid_t, any Error>) { result.withLock { $0 = value } }

  func get() throws -> pid_t {
    guard let value = result.withLock({ $0 }) else { throw TestSupportError("nothing was started") }
    return try value.get()
  }
}
