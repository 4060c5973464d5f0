import FerryMissionServer
import FerryProtocol

/// Calls of the service for missions, whose failures become problems.
struct MissionCalls: Sendable {
  let core: ServiceCore
  /// `nil` if there is no directory for missions' content.
  let missions: MissionService?

  /// Returns the service; a problem if the server has none.
  func service() throws(Problem) -> MissionService {
    guard let desk = missions else {
      throw Problem(
        .unavailable,
        "this server has no place for missions' content: start it with --blobs DIR")
    }
    return desk
  }

  /// Calls the publisher. A failure goes to the log, and to the client as a problem.
  func call<T>(
    _ body: () async throws(MissionFailure) -> T
  ) async throws(Problem) -> T {
    do {
      return try await body()
    } catch {
      core.log.write(error)
      switch error {
      case .refused(let problem): throw problem
      case .store(let error):
        core.metrics.countStoreError()
        throw Problem(error)
      case .content(let error): throw Problem(error)
      // The path is the server's own business.
      case .key(.missing(_, let signer)), .key(.other(_, let signer)):
        throw .otherKey(than: signer)
      case .key: throw Problem(.unavailable, "the server has no key to sign missions with")
      }
    }
  }
}

extension Problem {
  fileprivate static func otherKey(than signer: String) -> Problem {
    Problem(
      .missionConflict,
      "the key \(signer) signed the published missions, but the server does not have it any more, "
        + "and devices refuse another key. Restore the key's file (--mission-key), or publish with "
        + "?newKey=true and trust the new key on every device")
  }
}
