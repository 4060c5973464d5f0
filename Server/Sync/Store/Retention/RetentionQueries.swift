import FerryProtocol

// The retention horizon of a space, in both stores. It rises first and permanently. Only then are
// rows deleted, so no cursor is served that would miss one.
extension SyncStore {
  /// Marks the head's time if due, and raises the retention horizon.
  package func raiseRetentionHorizon(
    of space: Int64, _ request: HorizonRequest
  ) async throws(StoreError) -> RaisedHorizon {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.lock(space)
        let state = try connection.horizonState(of: space, request)
        if let mark = state.dueMark(request) {
          try connection.run(
            RetentionQueries.mark,
            [.integer(space), .integer(mark.sequence), .integer(mark.at)])
        }
        let raised = state.raised(request)
        if raised.retentionHorizon > state.retentionHorizon {
          try connection.run(
            RetentionQueries.raise, [.integer(raised.retentionHorizon), .integer(space)])
          try connection.run(
            RetentionQueries.forget, [.integer(space), .integer(raised.retentionHorizon)])
        }
        return raised
      }
    }
  }
}

extension PlainConnection {
  fileprivate func horizonState(
    of space: Int64, _ request: HorizonRequest
  ) throws -> HorizonState {
    let found = try rows(RetentionQueries.state, [.integer(space)]) {
      (head: try $0.integer(0), horizon: try $0.integer(1))
    }
    guard let (head, horizon) = found.first else { throw StoreError.spaceGone }
    return HorizonState(
      head: head, retentionHorizon: horizon, newest: try newestMark(of: space, before: .max),
      oldEnough: try newestMark(of: space, before: request.cutoff))
  }

  private func newestMark(of space: Int64, before cutoff: Int64) throws -> HeadTime? {
    try rows(RetentionQueries.newestMark, [.integer(space), .integer(cutoff)]) {
      HeadTime(sequence: try $0.integer(0), at: try $0.integer(1))
    }.first
  }
}

private enum RetentionQueries {
  static let state = PlainStatement(
    "horizon", "SELECT head, retention_horizon FROM spaces WHERE id = $1")
  static let newestMark = PlainStatement(
    "head_time",
    """
    SELECT sequence, at FROM head_times WHERE space = $1 AND at <= $2
    ORDER BY sequence DESC LIMIT 1
    """)
  static let mark = PlainStatement(
    "head_time_save", "INSERT INTO head_times(space, sequence, at) VALUES ($1, $2, $3)")
  static let raise = PlainStatement(
    "horizon_save", "UPDATE spaces SET retention_horizon = $1 WHERE id = $2")
  static let forget = PlainStatement(
    "head_times_forget", "DELETE FROM head_times WHERE space = $1 AND sequence < $2")
}
