import FerryMissionServer
import FerryProtocol

/// The reason why a mission was not published, retracted or shown.
package enum MissionFailure: Error, Sendable, Equatable {
  /// The request cannot be fulfilled.
  case refused(Problem)
  case store(StoreError)
  case content(BlobError)
  case key(SigningKeyError)
}

extension MissionFailure {
  /// Asks the store, and throws the errors as this type.
  static func asking<T>(
    _ call: () async throws(StoreError) -> T
  ) async throws(MissionFailure) -> T {
    do {
      return try await call()
    } catch {
      throw .store(error)
    }
  }
}

extension ContentStore {
  /// Runs `body` on the content, and throws the errors as those of missions.
  func content<T: Sendable>(
    _ body: (any ContentStore) async throws(BlobError) -> T
  ) async throws(MissionFailure) -> T {
    do {
      return try await body(self)
    } catch {
      throw .content(error)
    }
  }
}
