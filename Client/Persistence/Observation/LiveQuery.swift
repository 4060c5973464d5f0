import Observation

/// The newest result of a live query, for user interfaces. The query ends with this object.
///
/// ```swift
/// @MainActor struct Tasks {
///   let open = LiveQuery(replica.observe { try $0.query("SELECT * FROM tasks WHERE done = 0") })
///   var count: Int { open.value?.count ?? 0 }
/// }
/// ```
@MainActor @Observable
public final class LiveQuery<Value: Sendable> {
  /// The newest result; `nil` before the first one.
  public private(set) var value: Value?
  /// The error at the end of the query.
  public private(set) var error: (any Error)?
  @ObservationIgnored private var task: Task<Void, Never>?

  /// Reads the results of an observation, such as those of `observe(_:)` of a ``LocalDatabase`` or
  /// a `Replica`.
  public init(_ results: AsyncThrowingStream<Value, any Error>) {
    task = Task { [weak self] in
      do {
        for try await value in results { self?.value = value }
      } catch {
        self?.error = error
      }
    }
  }

  isolated deinit { task?.cancel() }
}
