import Foundation

extension Thread {
  /// Starts a thread with a name for debuggers (15 bytes are kept on Linux).
  ///
  /// - Parameter stackSize: bytes.
  package static func start(
    named name: String, stackSize: Int, _ body: @escaping @Sendable () -> Void
  ) {
    // On Linux a name has no effect before the call of `start` has returned.
    let hasStarted = DispatchSemaphore(value: 0)
    let thread = Thread {
      hasStarted.wait()
      Thread.current.name = name
      body()
    }
    thread.stackSize = stackSize
    thread.start()
    hasStarted.signal()
  }
}
