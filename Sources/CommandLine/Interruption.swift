import FerryPlatform
import Foundation
import Synchronization

/// Turns signals into the cancellation of a task: the first one cancels, the second one ends the
/// process.
final class Interruption: Sendable {
  private struct State {
    var first: Int32?
    var cancel: (@Sendable () -> Void)?
  }

  private let exitNow: @Sendable (Int32) -> Void
  private let state = Mutex(State())

  /// - Parameter exitNow: Ends the process, with 128 and the number of the second signal.
  init(exitNow: @escaping @Sendable (Int32) -> Void) {
    self.exitNow = exitNow
  }

  /// The number of the first signal received.
  var signal: Int32? { state.withLock { $0.first } }

  /// Cancels the task at the first signal, even if the signal came before.
  func cancels(_ task: Task<some Sendable, some Error>) {
    let isLate = state.withLock { state in
      state.cancel = { task.cancel() }
      return state.first != nil
    }
    if isLate { task.cancel() }
  }

  /// Records a signal.
  func receive(_ number: Int32) {
    let (isFirst, cancel) = state.withLock { state in
      defer { state.first = state.first ?? number }
      return (state.first == nil, state.cancel)
    }
    if isFirst { cancel?() } else { exitNow(128 + number) }
  }

  /// Listens for a signal until the returned source is cancelled. The signal keeps the default
  /// action until this returns.
  func listen(for number: Int32) async -> any DispatchSourceSignal {
    Platform.letSourceHandle(signal: number)
    let source = DispatchSource.makeSignalSource(
      signal: number, queue: DispatchQueue(label: "Interruption"))
    source.setEventHandler { @Sendable [self] in receive(number) }
    await withCheckedContinuation { continuation in
      source.setRegistrationHandler { @Sendable in continuation.resume() }
      source.resume()
    }
    return source
  }
}
