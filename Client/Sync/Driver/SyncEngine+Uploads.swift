import FerryProtocol

extension SyncEngine {
  /// A round that sends what is pending. Where it fails because of the server or of the way to it,
  /// the operations of upload-only tables that it was to send are marked (seed row S2.2). A round
  /// that is cancelled or killed has not failed: the next one goes on with it.
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
  /// Whether it is the server, or the way to it, that stood in the way.
  fileprivate var isOfDelivery: Bool {
    switch self {
    case .offline, .refused, .unexpectedAnswer, .untrusted, .redirected, .tooLarge, .leftBehind:
      true
    default: false
    }
  }
}
