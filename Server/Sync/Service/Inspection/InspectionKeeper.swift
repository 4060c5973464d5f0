import FerryPlatform
import FerryProtocol
import Synchronization

/// Collects a server's observations and writes them to the store from time to time.
package final class InspectionKeeper: Sendable {
  /// The time between two writes.
  static let interval = Duration.seconds(5)

  private let store: any SyncStore
  private let clock: ServiceClock
  private let log: ServiceLog
  private let ledger = Mutex(InspectionLedger())
  private let saving = AsyncTurn()

  init(store: any SyncStore, clock: ServiceClock, log: ServiceLog) {
    (self.store, self.clock, self.log) = (store, clock, log)
  }

  /// Changes the ledger.
  func update(_ change: (inout InspectionLedger) -> Void) { ledger.withLock { change(&$0) } }

  /// Runs until the task is cancelled.
  package func run() async {
    while (try? await Task.sleep(for: Self.interval)) != nil { await save() }
  }

  /// Stores the observations, and waits for those of another call under way. A failure goes to the
  /// log, and the next call tries again.
  package func save() async {
    await saving.perform {
      let observations = ledger.withLock { $0.drain() }
      // The memory of an answer is not for observations.
      await PageRoom.$current.withValue(nil) {
        do throws(StoreError) {
          try await store.store(observations, now: clock.wall())
        } catch {
          ledger.withLock { $0.restore(observations) }
          log.write(error)
        }
      }
    }
  }
}
