import FerryPlatform

/// A process of `ferry-patch` and the socket to it. The process's descriptors 0 and 1 are the
/// socket's other end; it has no environment.
struct HostProcess: ~Copyable {
  private let process: pid_t
  /// The app's end. It never blocks.
  let socket: Int32
  private var isReaped = false

  /// Starts a process confined to these limits.
  init(_ host: PatchHost, limits: PatchLimits) throws(PatchFailure) {
    let milliseconds = max(1, limits.time.patchMilliseconds)
    let arguments = [host.path, "run", String(limits.memoryBytes), String(milliseconds)]
    guard let ends = SocketPair.open() else { throw .hostMissing(Self.reason(errno)) }
    defer { close(ends.other) }
    var process: pid_t = 0
    let code = Self.spawn(&process, arguments, socket: ends.other)
    guard code == 0 else {
      close(ends.own)
      throw .hostMissing("\(host.path): \(Self.reason(code))")
    }
    self.process = process
    socket = ends.own
  }

  deinit {
    if !isReaped {
      kill(process, SIGKILL)
      _ = Self.wait(for: process, options: 0)
    }
    close(socket)
  }

  /// Returns how the process ended; `nil` if it still runs.
  mutating func end() -> PatchCall.HostEnd? {
    guard let status = Self.wait(for: process, options: WNOHANG) else { return nil }
    isReaped = true
    let signal = status & 0x7F
    return signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
  }

  /// Stops the process, whatever it does.
  func stop() { kill(process, SIGKILL) }

  // MARK: System calls

  /// Returns the status; `nil` if the process still runs.
  private static func wait(for process: pid_t, options: Int32) -> Int32? {
    var status: Int32 = 0
    while true {
      let found = waitpid(process, &status, options)
      if found == process { return status }
      // If an app ignores the ends of its children, there is nothing to wait for: an unknown exit.
      if found < 0 && errno != EINTR { return 1 << 8 }
      if found == 0 { return nil }
    }
  }

  private static func spawn(
    _ process: inout pid_t, _ arguments: [String], socket: Int32
  ) -> Int32 {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, socket, 0)
    posix_spawn_file_actions_adddup2(&actions, socket, 1)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_RDWR, 0)
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    // A separate group: the terminal's signals are for the app.
    #if canImport(Darwin)
      let isolation = Int32(POSIX_SPAWN_CLOEXEC_DEFAULT)
    #else
      let isolation: Int32 = 0
    #endif
    let flags =
      Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | Int32(POSIX_SPAWN_SETPGROUP)
      | isolation
    posix_spawnattr_setflags(&attributes, Int16(flags))
    let copies = arguments.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    var environment: [UnsafeMutablePointer<CChar>?] = [nil]
    return posix_spawn(
      &process, arguments[0], &actions, &attributes, copies + [nil], &environment)
  }

  private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// Two connected sockets, inherited by no child process.
enum SocketPair {
  /// Returns the sockets; `nil`, and `errno`, if there are none left. The own one never blocks, and
  /// raises no signal when the other one is closed.
  static func open() -> (own: Int32, other: Int32)? {
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      guard socketpair(AF_UNIX, SOCK_STREAM, 0, &ends) == 0 else { return nil }
      var on: Int32 = 1
      let size = socklen_t(MemoryLayout<Int32>.size)
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      setsockopt(ends[0], SOL_SOCKET, SO_NOSIGPIPE, &on, size)
    #else
      let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
    #endif
    _ = fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK)
    return (ends[0], ends[1])
  }

  /// Writes without blocking; returns the number of bytes, or −1.
  static func write(_ bytes: UnsafeRawBufferPointer, to socket: Int32) -> Int {
    #if canImport(Darwin)
      send(socket, bytes.baseAddress, bytes.count, 0)
    #else
      send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    #endif
  }
}

extension Duration {
  /// Whole milliseconds, rounded up.
  var patchMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}
