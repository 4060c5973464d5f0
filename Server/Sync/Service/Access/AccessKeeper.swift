/// The background work of access: it stores the last uses of tokens, and removes old entries of the
/// audit log.
package struct AccessKeeper: Sendable {
  /// The time between two writes of the tokens' uses.
  static let interval = Duration.seconds(60)
  /// Turns between two looks at the audit log: an hour.
  private static let turns = 60

  private let gate: AccessGate
  private let store: any SyncStore
  private let clock: ServiceClock
  private let log: ServiceLog
  private let retention: Duration
  private let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameters:
  ///   - retention: How long entries of the audit log are kept.
  ///   - sleep: How time passes between runs; throws when it is to end.
  package init(
    gate: AccessGate, store: any SyncStore, clock: ServiceClock, log: ServiceLog,
    retention: Duration,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    (self.gate, self.store, self.clock, self.log) = (gate, store, clock, log)
    self.retention = retention
    self.sleep = sleep
  }

  /// Runs until the task is cancelled. A failed run is logged, and repeated.
  package func run() async {
    var turn = 0
    repeat {
      if turn % Self.turns == 0 { await endAudit() }
      turn += 1
      guard (try? await sleep(Self.interval)) != nil else { return }
      await storeUses()
      log.reportLeftOut()
    } while true
  }

  /// Writes down which tokens were used since the last call.
  package func storeUses() async {
    do throws(StoreError) {
      try await gate.storeUses()
    } catch {
      log.write(error)
    }
  }

  /// Deletes entries older than the retention.
  package func endAudit() async {
    let age = retention.components.seconds.multipliedReportingOverflow(by: 1_000)
    guard !age.overflow else { return }
    do throws(StoreError) {
      let count = try await store.endAudit(before: clock.wall() - age.partialValue)
      if count > 0 {
        log.write(.info, "entries of the audit log deleted", detail: String(count))
      }
    } catch {
      log.write(error)
    }
  }
}
