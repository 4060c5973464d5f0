import FerryNetworking
import FerryProtocol

/// Keeps the token that an application fetches, and has it fetched again when the server rejects
/// it. All requests of a replica share one fetch.
actor TokenKeeper {
  typealias Fetch = @Sendable (_ rejected: String?) async throws -> String

  /// The most bytes of a token: a request's header fields have to hold it.
  static let bytesMax = 16_384

  /// The only server and space that may receive the token.
  nonisolated let address: ServerAddress
  private nonisolated let fetch: Fetch
  private var token: String?
  private var fetching: Task<String, any Error>?

  init(_ address: ServerAddress, fetch: @escaping Fetch) {
    self.address = address
    self.fetch = fetch
  }

  /// Returns a keeper of tokens from the same source for another space of the same server.
  nonisolated func keeper(for other: ServerAddress) -> TokenKeeper? {
    other.url == address.url ? TokenKeeper(other, fetch: fetch) : nil
  }

  /// Returns the token.
  ///
  /// - Parameter rejected: a token that the server has rejected; another one is fetched if no other
  ///   request has done so.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/tokenMissing(_:)``,
  ///   `CancellationError`.
  func token(otherThan rejected: String? = nil) async throws -> String {
    while true {
      try Task.checkCancellation()
      if let token, token != rejected { return token }
      let task = fetching ?? Task { [fetch] in try await fetch(rejected) }
      fetching = task
      do {
        return try await withTaskCancellationHandler {
          try keep(try await task.value, of: task)
        } onCancel: {
          task.cancel()
        }
      } catch {
        if fetching == task { fetching = nil }
        // Another request was cancelled, and the fetch with it.
        if task.isCancelled && !Task.isCancelled { continue }
        throw Self.failure(error)
      }
    }
  }

  private func keep(_ token: String, of task: Task<String, any Error>) throws -> String {
    guard (1...Self.bytesMax).contains(token.utf8.count),
      token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else {
      throw ReplicaError.tokenMissing(
        "the app gave a token that is empty, too long or has characters other than visible ASCII")
    }
    if fetching == task {
      fetching = nil
      self.token = token
    }
    return token
  }

  private static func failure(_ error: any Error) -> any Error {
    switch error {
    case is ReplicaError, is CancellationError: error
    case is NetworkError, is TransportError: ReplicaError(error)
    default: ReplicaError.tokenMissing("the app could not get a token: \(error)")
    }
  }
}
