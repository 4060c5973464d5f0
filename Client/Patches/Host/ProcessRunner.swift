import FerryPlatform
import Foundation

/// Runs each call in a separate process; it ends with the call: no call sees another one's traces.
/// At most ``atOnce`` calls run at once; others wait for their turn.
final class ProcessRunner: PatchRunning {
  /// Calls, and thus processes, at once.
  static let atOnce = 4

  private let host: PatchHost
  private let threads = ThreadPoolExecutor(name: "ferry-patch", threads: atOnce)

  init(_ host: PatchHost) { self.host = host }

  func run(
    _ request: PatchRequest, services: @escaping ServiceCaller
  ) async -> Result<[UInt8], PatchFailure> {
    let inbox = HostInbox()
    let host = host
    let work = Task(executorPreference: threads) {
      HostSession(request, inbox, services).run(host)
    }
    return await withTaskCancellationHandler {
      await work.value
    } onCancel: {
      inbox.cancel()
    }
  }
}

/// The thread's side of one call: performs the effects of ``PatchCall``. It blocks.
struct HostSession {
  private let request: PatchRequest
  private let inbox: HostInbox
  private let services: ServiceCaller

  init(_ request: PatchRequest, _ inbox: HostInbox, _ services: @escaping ServiceCaller) {
    self.request = request
    self.inbox = inbox
    self.services = services
  }

  func run(_ host: PatchHost) -> Result<[UInt8], PatchFailure> {
    guard let wakeups = inbox.open() else {
      return .failure(.hostMissing("no descriptor is left"))
    }
    defer {
      inbox.close()
      Platform.closeDescriptor(wakeups)
    }
    do throws(PatchFailure) {
      var process = try HostProcess(host, limits: request.limits)
      return converse(with: &process, wakeups)
    } catch {
      return .failure(error)
    }
  }

  private func converse(
    with process: inout HostProcess, _ wakeups: Int32
  ) -> Result<[UInt8], PatchFailure> {
    let deadline = ContinuousClock.now + request.limits.time
    var call = PatchCall(services: request.services, limits: request.limits)
    var outgoing = PatchCall.opening(script: request.script, input: request.input)[...]
    while true {
      var events = inbox.drain()
      // The caller has gone: nobody reads this.
      if events.isCancelled { return .failure(.timeUsedUp) }
      if ContinuousClock.now >= deadline { events.events.append(.deadline) }
      events.events += Self.exchange(process, &outgoing)
      // The end comes after everything the host wrote before.
      if Self.isClosed(process) { events.events.append(.ended(Self.end(of: &process, deadline))) }
      var isIdle = events.events.isEmpty
      for event in events.events {
        for effect in call.handle(event) {
          switch effect {
          case .send(let bytes): outgoing += bytes
          case .call(let number, let service, let arguments): ask(service, arguments, number)
          case .finish(let result): return result
          }
          isIdle = false
        }
      }
      if isIdle { Self.wait(process, wakeups, writes: !outgoing.isEmpty, until: deadline) }
    }
  }

  private func ask(_ service: String, _ arguments: [UInt8], _ number: Int64) {
    let (inbox, services) = (inbox, services)
    let task = Task {
      do {
        inbox.push(.answered(number, .success(try await services(service, arguments))))
      } catch {
        let failure = PatchCall.ServiceFailure(text: String(describing: error))
        inbox.push(.answered(number, .failure(failure)))
      }
    }
    inbox.add(number, task)
  }

  // MARK: System calls

  /// Writes and reads without blocking.
  private static func exchange(
    _ process: borrowing HostProcess, _ outgoing: inout ArraySlice<UInt8>
  ) -> [PatchCall.Event] {
    while !outgoing.isEmpty {
      let count = outgoing.withUnsafeBytes { SocketPair.write($0, to: process.socket) }
      // An error shows when the socket is read.
      guard count > 0 else { break }
      outgoing = outgoing.dropFirst(count)
    }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(process.socket, &bytes, bytes.count, 0)
    return count > 0 ? [.received(Array(bytes[..<count]))] : []
  }

  /// Returns true if the host has closed its end and everything from the host is read.
  private static func isClosed(_ process: borrowing HostProcess) -> Bool {
    var byte: UInt8 = 0
    let count = recv(process.socket, &byte, 1, Int32(MSG_PEEK))
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)
  }

  /// Waits for a process after it closed the socket. A process that continues is stopped.
  private static func end(
    of process: inout HostProcess, _ deadline: ContinuousClock.Instant
  ) -> PatchCall.HostEnd {
    while true {
      if let end = process.end() { return end }
      if ContinuousClock.now >= deadline { process.stop() }
      usleep(500)
    }
  }

  private static func wait(
    _ process: borrowing HostProcess, _ wakeups: Int32, writes: Bool,
    until deadline: ContinuousClock.Instant
  ) {
    let events = Int16(POLLIN) | (writes ? Int16(POLLOUT) : 0)
    var places = [
      pollfd(fd: process.socket, events: events, revents: 0),
      pollfd(fd: wakeups, events: Int16(POLLIN), revents: 0),
    ]
    let rest = (deadline - ContinuousClock.now).patchMilliseconds
    _ = poll(&places, 2, Int32(clamping: max(0, rest)))
    var bytes: (UInt64, UInt64) = (0, 0)
    _ = withUnsafeMutableBytes(of: &bytes) {
      recv(wakeups, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
    }
  }
}
