import Ferry
import Synchronization

/// The missions of a replica's last pull whose names begin with `guide`.
final class OwnCatalogue: MissionCatalogue {
  private let replica: Replica
  private let name: SpaceName
  private let counter = Mutex(0)

  init(_ replica: Replica, space: SpaceName) { (self.replica, name) = (replica, space) }

  /// The number of calls for the missions.
  var count: Int { counter.withLock { $0 } }

  func space() async throws(MissionError) -> SpaceName { name }

  func missions() async throws(MissionError) -> [MissionRecord] {
    counter.withLock { $0 += 1 }
    do {
      return try await replica.missions().filter { $0.id.value.hasPrefix("guide") }
    } catch {
      throw MissionError(.database, "\(error)")
    }
  }
}
