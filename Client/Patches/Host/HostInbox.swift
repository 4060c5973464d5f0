import FerryPlatform
import Synchronization

/// Events for the thread of a host, from services' tasks and from cancellation. A byte in a socket
/// wakes the thread.
final class HostInbox: Sendable {
  private struct State {
    var events: [PatchCall.Event] = []
    var isCancelled = false
    var tasks: [Int64: Task<Void, Never>] = [:]
    /// −1 after the end, so no late answer writes to another file's descriptor.
    var wakeEnd: Int32 = -1
  }

  private let state = Mutex(State())

  /// Opens two sockets and returns the end for poll(2); `nil` if there is no descriptor left.
  func open() -> Int32? {
    guard let ends = SocketPair.open() else { return nil }
    state.withLock { $0.wakeEnd = ends.own }
    return ends.other
  }

  /// Closes the other end, and cancels the services still at work.
  func close() {
    let tasks = state.withLock { state in
      if state.wakeEnd >= 0 { Platform.closeDescriptor(state.wakeEnd) }
      state.wakeEnd = -1
      defer { state.tasks = [:] }
      return state.tasks.values.map(\.self)
    }
    for task in tasks { task.cancel() }
  }

  func push(_ event: PatchCall.Event) { change { $0.events.append(event) } }

  func cancel() { change { $0.isCancelled = true } }

  /// Stores a service's task until the answer.
  func add(_ number: Int64, _ task: Task<Void, Never>) {
    state.withLock { $0.tasks[number] = task }
  }

  func drain() -> (events: [PatchCall.Event], isCancelled: Bool) {
    state.withLock { state in
      defer { state.events = [] }
      return (state.events, state.isCancelled)
    }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      guard state.wakeEnd >= 0 else { return }
      // A full socket wakes the thread, too.
      _ = withUnsafeBytes(of: UInt8(1)) { SocketPair.write($0, to: state.wakeEnd) }
    }
  }
}
