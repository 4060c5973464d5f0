import FerryProtocol

extension SyncEngine {
  /// Runs a round that sends pending operations. If the server or the network makes it fail, the
  /// round's operations of upload-only tables are marked (SPEC.md §17). A cancelled or killed round
  /// has not failed: the next one continues it.
  func lockedToSend<Start: Sendable>(
    _ prepare: @escaping @Sendable (ReplicaFile) throws -> Start,
    round: (SyncAPI, Start, inout SyncRound) async throws -> Void
  ) async throws -> SyncReport {
    try await locked { file in
      (newest: try file.queue.newestOrder(), start: try prepare(file))
    } round: { api, begun, result in
      do {
        try await round(api, begun.start, &result)
      } catch {
        let failure = ReplicaError(error)
        if failure.isOfDelivery {
          try await thread.run {
            try $0.uploads.markFailed(through: begun.newest, failure.description)
          }
        }
        throw error
      }
    }
  }
}

extension ReplicaError {
  /// True if the server or the network caused the failure.
  fileprivate var isOfDelivery: Bool {
    switch self {
    case .offline, .refused, .unexpectedAnswer, .untrusted, .redirected, .tooLarge, .leftBehind,
      .unfinished:
      true
    default: false
    }
  }
}
