import Synchronization

/// Work beside a replica's file, paused and ended with the replica, such as a manager of missions.
package protocol ReplicaCompanion: AnyObject, Sendable {
  /// Stops all work for a while, and returns after the end of it.
  func suspend() async
  /// Continues the work.
  func resume() async
  /// Ends all work, and returns after the end of it.
  func close() async
  /// Acts on the result of a sync or pull of the replica.
  func synced() async
  /// Does work that waits for the server and was not done by a sync. Returns true if none is left.
  func attend() async -> Bool
}

extension ReplicaCompanion {
  /// Does nothing.
  package func synced() async {}
  /// There is none.
  package func attend() async -> Bool { true }
}

/// The companions of a file's replicas. They do not keep them alive.
final class ReplicaCompanions: Sendable {
  /// The place of their files if the replica is in memory.
  let memory: MemoryPlace?

  init(memory: MemoryPlace?) { self.memory = memory }

  private struct Entry: Sendable {
    weak var companion: (any ReplicaCompanion)?
  }

  private let entries = Mutex<[Entry]>([])

  func add(_ companion: any ReplicaCompanion) {
    entries.withLock { entries in
      entries.removeAll { $0.companion == nil }
      entries.append(Entry(companion: companion))
    }
  }

  var all: [any ReplicaCompanion] { entries.withLock { $0.compactMap(\.companion) } }
}

extension Replica {
  /// Suspends and ends work beside the file together with the replica.
  package func accompany(with companion: any ReplicaCompanion) { companions.add(companion) }
}
