import Foundation
import Synchronization

/// The facts about a child process, filled in by the threads that read and wait for it.
final class ChildCapture: Sendable {
  private struct Waiter {
    /// Resumes the waiting task if possible; returns true if it did.
    let attempt: @Sendable (borrowing State) -> Bool
    let fail: @Sendable (any Error) -> Void
  }

  private struct State {
    var bytes: [ChildProcess.Stream: [UInt8]] = [.output: [], .error: []]
    /// Bytes behind the last line's end.
    var partial: [ChildProcess.Stream: [UInt8]] = [:]
    var lines: [String] = []
    /// Descriptors that may have more bytes.
    var open: [ChildProcess.Stream: Int32] = [:]
    var status: ChildProcess.ExitStatus?
    var isReaped = false
    var waiters: [Int: Waiter] = [:]
    /// Waits that were over before they had begun.
    var ended: [Int: any Error] = [:]
    var lastWaiter = 0

    /// True when no other process holds the streams any more, either.
    var isOver: Bool { status != nil && open.isEmpty }

    /// Reads the present bytes, at most about `countMax`. Closes the stream at the end.
    mutating func drain(_ stream: ChildProcess.Stream, countMax: Int) {
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      var total = 0
      while total < countMax, let descriptor = open[stream] {
        let count = Foundation.read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        if count < 0 && errno == EAGAIN { return }
        if count <= 0 {
          append([], to: stream, isLast: true)
          open[stream] = nil
        } else {
          append(buffer[..<count], to: stream)
          total += count
        }
      }
    }

    /// Appends bytes, and cuts them into lines.
    mutating func append(
      _ new: ArraySlice<UInt8>, to stream: ChildProcess.Stream, isLast: Bool = false
    ) {
      bytes[stream, default: []].append(contentsOf: new)
      let text = partial[stream, default: []] + new
      var rest = text[...]
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        lines.append(String(decoding: rest[..<end], as: UTF8.self))
        rest = rest[(end + 1)...]
      }
      if isLast && !rest.isEmpty {
        lines.append(String(decoding: rest, as: UTF8.self))
        rest = []
      }
      partial[stream] = Array(rest)
    }
  }

  /// A pipe of Linux never holds more (pipe(7)).
  private static let pipeBytesMax = 1 << 20

  private let processID: pid_t
  private let name: String
  private let state = Mutex(State())

  init(_ processID: pid_t, name: String) {
    self.processID = processID
    self.name = name
  }

  /// Starts the threads. They own the descriptors.
  func start(output: Int32, error: Int32) {
    let streams: [ChildProcess.Stream: Int32] = [.output: output, .error: error]
    state.withLock { $0.open = streams }
    for (stream, descriptor) in streams {
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      Thread { [self] in read(descriptor, stream) }.start()
    }
    Thread { [self] in waitForEnd() }.start()
  }

  var lineCount: Int { state.withLock(\.lines.count) }
  var endedWith: ChildProcess.ExitStatus? { state.withLock(\.status) }

  /// The exit status and the last output, once there is a status.
  var endReport: String? { endedWith.map { "\(name) has ended with \($0); \(report)" } }

  func text(_ stream: ChildProcess.Stream) -> String {
    String(decoding: state.withLock { $0.bytes[stream] ?? [] }, as: UTF8.self)
  }

  func signal(_ signal: Int32) {
    // Under the lock: the id cannot pass on to another process.
    state.withLock { if !$0.isReaped { _ = kill(processID, signal) } }
  }

  func line(
    after first: Int, within limit: Duration, where predicate: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await wait(for: "a line", within: limit) { state in
      if let line = state.lines.dropFirst(first).first(where: predicate) { return .success(line) }
      guard let status = state.status else { return nil }
      return .failure(TestSupportError("it ended with \(status) before printing the line"))
    }
  }

  func exitStatus(within limit: Duration) async throws -> ChildProcess.ExitStatus {
    try await wait(for: "its end", within: limit) { state in
      state.isOver ? state.status.map { .success($0) } : nil
    }
  }

  /// Waits until `outcome` is not nil; it is asked again after each change.
  private func wait<Value: Sendable>(
    for what: String, within limit: Duration,
    until outcome: @escaping @Sendable (borrowing State) -> Result<Value, any Error>?
  ) async throws -> Value {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    let timer = Task {
      try await Task.sleep(for: limit)
      end(id, TestSupportError("gave up waiting for \(what) after \(limit)"))
    }
    defer { timer.cancel() }
    do {
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          register(
            id,
            Waiter { state in
              guard let result = outcome(state) else { return false }
              continuation.resume(with: result)
              return true
            } fail: {
              continuation.resume(throwing: $0)
            })
        }
      } onCancel: {
        end(id, CancellationError())
      }
    } catch let error as TestSupportError {
      throw TestSupportError("\(name): \(error); \(report)")
    }
  }

  private func register(_ id: Int, _ waiter: Waiter) {
    state.withLock { state in
      if let error = state.ended.removeValue(forKey: id) {
        waiter.fail(error)
      } else if !waiter.attempt(state) {
        state.waiters[id] = waiter
      }
    }
  }

  private func end(_ id: Int, _ error: any Error) {
    state.withLock { state in
      if let waiter = state.waiters.removeValue(forKey: id) {
        waiter.fail(error)
      } else {
        state.ended[id] = error
      }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      for (id, waiter) in state.waiters where waiter.attempt(state) { state.waiters[id] = nil }
    }
  }

  private func read(_ descriptor: Int32, _ stream: ChildProcess.Stream) {
    var isOpen = true
    while isOpen {
      var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      _ = poll(&poller, 1, -1)
      change { state in
        state.drain(stream, countMax: 1)
        isOpen = state.open[stream] != nil
      }
    }
    close(descriptor)
  }

  private func waitForEnd() {
    var information = siginfo_t()
    while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    change { state in
      // The whole output of the process, though others may still hold the streams.
      for stream in [ChildProcess.Stream.output, .error] {
        state.drain(stream, countMax: Self.pipeBytesMax)
      }
      var status: Int32 = 0
      waitpid(processID, &status, 0)
      let signal = status & 0x7f
      state.isReaped = true
      state.status = signal == 0 ? .exited((status >> 8) & 0xff) : .killed(signal: signal)
    }
  }

  private var report: String {
    let (output, error) = (text(.output), text(.error))
    return "standard output: \(output.suffix(4000)) standard error: \(error.suffix(4000))"
  }
}
