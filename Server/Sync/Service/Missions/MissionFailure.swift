import FerryProtocol
import MissionServer

/// Why a mission was not published, retracted or shown.
package enum MissionFailure: Error, Sendable, Equatable {
  /// What is asked for cannot be.
  case refused(Problem)
  case store(StoreError)
  case content(BlobError)
  case key(SigningKeyError)
}

extension MissionFailure {
  /// Asks the store, and tells its failures as this kind.
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

extension BlobThreads {
  /// Works on the content's directory, and tells its failures as those of missions.
  func content<T: Sendable>(
    _ body: @escaping @Sendable (BlobDirectory, Cancellation) throws(BlobError) -> T
  ) async throws(MissionFailure) -> T {
    do {
      return try await run(body)
    } catch {
      throw .content(error)
    }
  }
}
