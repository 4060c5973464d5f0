import FerryProtocol

extension SyncEngine {
  /// Runs a round that sends pending operations. If it fails because of the server or the network,
  /// its operations of upload-only tables are marked (SPEC.md §17). A cancelled or killed round has
  /// not failed: the next one continues it.
  func lockedToSend(
    _ round: (SyncAPI) async throws -> SyncReport
  ) async throws -> SyncReport {
    try await locked { api in
      let newest = try await thread.run { try $0.newestPending() }
      do {
        return try await round(api)
      } catch {
        let failure = ReplicaError(error)
        if failure.isOfDelivery {
          try await thread.run { try $0.markFailed(through: newest, failure.description) }
        }
        throw error
      }
    }
  }
}

extension ReplicaError {
  /// Whether the server or the network caused the failure.
  fileprivate var isOfDelivery: Bool {
    switch self {
    case .offline, .refused, .unexpectedAnswer, .untrusted, .redirected, .tooLarge, .leftBehind:
      true
    default: false
    }
  }
}
