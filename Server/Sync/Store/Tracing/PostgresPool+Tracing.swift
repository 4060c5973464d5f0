import FerryPostgres

extension PostgresPool {
  /// Runs `body` on a connection like ``PostgresPool/run(in:_:)``. In an exported request, the
  /// wait, the work and each round trip are spans.
  ///
  /// - Parameters:
  ///   - operation: The name of the work.
  ///   - isStandby: Whether the server is a standby.
  func traced<Value: Sendable>(
    _ operation: String, in lane: PoolLane = .push, isStandby: Bool = false,
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    guard let span = OpenSpan.current else { return try await run(in: lane, body) }
    let wait = span.child()
    return try await run(in: lane) { connection in
      wait.end(StoreSpan.waiting)
      let work = span.child()
      var attributes = [StoreSpan.postgres, StoreSpan.operation(operation)]
      if isStandby { attributes.append(SpanAttribute("ferry.store.standby", .flag(true))) }
      connection.observer = PostgresObserver(tracing: work)
      defer { connection.observer = nil }
      do {
        let value = try body(connection)
        work.end("transaction \(operation)", .client, attributes)
        return value
      } catch {
        work.end(
          "transaction \(operation)", .client, attributes + StoreSpan.fault(of: error),
          failure: StoreSpan.reason(error))
        throw error
      }
    }
  }
}

extension PostgresObserver {
  /// Makes each round trip a span inside the work's, which the transactions name to the server.
  fileprivate init(tracing work: OpenSpan) {
    self.init(applicationName: "ferryd " + work.context.traceparent) { statements in
      let trip = work.child()
      let summary = StoreSpan.summary(of: statements)
      var attributes = [StoreSpan.postgres, SpanAttribute("db.query.summary", summary)]
      if statements.count > 1 {
        attributes.append(SpanAttribute("db.operation.batch.size", statements.count))
      }
      return { [attributes] error in
        trip.end(
          summary, .client, error.map { attributes + StoreSpan.fault(of: $0) } ?? attributes,
          failure: error.map(StoreSpan.reason))
      }
    }
  }
}
