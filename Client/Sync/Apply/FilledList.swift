import FerryProtocol
import FerrySQLite

/// How a first list is filled in beside the tables.
package struct FirstListOptions: Sendable {
  /// The fewest changes of a list that make copies of the tables worthwhile.
  package var changesMin = 20_000
  /// The changes of one transaction. Other writers wait for it, not for the list.
  package var sliceChanges = 2_000
  /// The rows of a copy whose foreign keys are checked at once.
  package var checkedRows = 20_000
  /// Returns the pause after a slice that took some time.
  ///
  /// SQLite has no queue for the lock of a file: processes that wait for it look again and again. So the
  /// pause is a share of the time for which the slice had the lock.
  package var pause: @Sendable (_ taken: Duration) -> Duration = {
    min(max($0 / 2, pauseMin), pauseMax)
  }

  package init() {}

  private static let pauseMin: Duration = .milliseconds(1)
  private static let pauseMax: Duration = .milliseconds(50)
}

/// The rows of a first list beside their tables, and the changes left for the exchange.
final class FilledList {
  let pairs: [ShadowTables.Pair]
  /// The newest own operation when the copies were made.
  let newestOrder: Int64
  private(set) var left: [Change] = []
  private(set) var applied = 0
  private(set) var newestTime = HybridTimestamp.zero
  private(set) var spellings = SpellingsFound()
  /// The plans for writes to the copies, by the names of the tables in the space.
  let plans: [Name: ApplyPlan]
  private let connection: SQLiteConnection
  private var rule = FirstList()
  private var lastPlan: ApplyPlan?

  init(
    _ pairs: [ShadowTables.Pair], _ plans: [Name: ApplyPlan], newestOrder: Int64,
    on connection: SQLiteConnection
  ) {
    (self.pairs, self.plans, self.newestOrder) = (pairs, plans, newestOrder)
    self.connection = connection
  }

  /// The filled tables, by their names in the space.
  var tables: [Name] { plans.keys.sorted() }

  /// Adds a change of the list, in order. Part of a transaction.
  ///
  /// - Throws: ``CannotFill`` if too many changes are left.
  func add(_ change: Change) throws {
    newestTime = max(newestTime, change.state.newestTime)
    let plan = plan(for: change.key.table)
    let step = rule.step(for: change, knowsAll: plan?.knowsAll(change.state.columns) ?? false)
    guard let plan, step != .leave else { return try leave(change) }
    do {
      if step == .remove {
        try plan.delete(change.key.record)
      } else {
        try plan.upsert(change.key.record, change.state.columns, isWhole: true, kept: [])
      }
      count(change, plan)
    } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
      try leave(change)
    }
  }

  private func count(_ change: Change, _ plan: ApplyPlan) {
    applied += 1
    spellings.add(change, plan)
  }

  private func leave(_ change: Change) throws {
    guard rule.leave(change) else { throw CannotFill() }
    left.append(change)
  }

  private func plan(for table: Name) -> ApplyPlan? {
    if let lastPlan, lastPlan.table.name == table { return lastPlan }
    lastPlan = plans[table]
    return lastPlan
  }
}

/// A list with rows that cannot be filled in beside their tables; it is applied at once.
struct CannotFill: Error {}

extension RecordState {
  /// The newest time in the state that may move a clock.
  var newestTime: HybridTimestamp {
    var newest = HybridTimestamp.zero
    func see(_ stamp: Stamp) {
      if stamp.time <= .seenMax && stamp.time > newest { newest = stamp.time }
    }
    for index in columns.indices { see(columns[index].stamp) }
    if let inserted { see(inserted.stamp) }
    if let deleted { see(deleted.stamp) }
    return newest
  }
}
