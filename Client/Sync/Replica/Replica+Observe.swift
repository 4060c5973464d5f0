import FerryPersistence

extension Replica {
  /// Returns the results of a live query: the present one, and at least another one after each
  /// commit with changes to rows read by the query. Local writes and syncs count. Each commit of
  /// another process runs the query, too, at most about 25 ms later.
  ///
  /// The rows are known of `TableQuery` and of `find`, such as `Note.find("n1", in: $0)`: the query
  /// does not run again if a commit changed only rows excluded by the query's conditions. Of plain
  /// SQL, only the tables are known.
  ///
  /// One run is under way at a time. Commits during a run count as one, and a slow consumer gets
  /// the newest result. The stream ends with the query's error, when the consumer stops, or when
  /// the replica is closed. While the replica is suspended, the query waits.
  ///
  /// ```swift
  /// for try await rows in replica.observe({ try $0.query("SELECT * FROM tasks WHERE done = 0") }) {
  ///   print("\(rows.count) open tasks")
  /// }
  /// ```
  ///
  /// - Parameter fetch: reads one snapshot, as in ``read(_:)``.
  public func observe<T: Sendable>(
    _ fetch: @escaping @Sendable (Database) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    observation.values(of: fetch, unless: { _, _ in false })
  }

  /// Returns the results of a live query; leaves out a result equal to the one before.
  public func observe<T: Sendable & Equatable>(
    _ fetch: @escaping @Sendable (Database) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    observation.values(of: fetch, unless: ==)
  }

  private var observation: LiveRead {
    LiveRead(readers: readers, hub: thread.changes, gate: thread.gate) { ReplicaError.closed }
  }
}
