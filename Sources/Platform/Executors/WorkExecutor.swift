/// A place for blocking work and an actor's jobs, one after another: a thread in the product, the
/// single thread of a simulation.
package protocol WorkExecutor: SerialExecutor {
  /// Runs one closure in turn and returns the result.
  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T
}

extension ThreadExecutor: WorkExecutor {}
