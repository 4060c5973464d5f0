import FerryPostgres
import FerryProtocol
import Synchronization

/// Compares the copies of views with them, beside the rounds of a mirror. A view that fails keeps the
/// rows of its copy, and stops no other one; the status has the reason.
final class MirrorViews: Sendable {
  private struct State {
    var schedules: [Name: ViewSchedule] = [:]
    /// The reasons of this process.
    var reasons: [Name: String] = [:]
    /// Reasons that the status lacks yet.
    var unstored: [Name: String] = [:]
  }

  private let schema: String
  private let ledger: MirrorLedger
  private let pool: any MirrorConnections
  private let log: Mirror.Log
  /// Called if a first comparison has filled a copy, and if a view fails or works again.
  private let onChange: @Sendable (_ isFilled: Bool) -> Void
  private let state = Mutex(State())

  /// - Parameter pool: connections for the comparisons alone, unless nothing else uses them now.
  init(
    _ schema: String, _ ledger: MirrorLedger, _ pool: any MirrorConnections,
    _ log: @escaping Mirror.Log, onChange: @escaping @Sendable (_ isFilled: Bool) -> Void = { _ in }
  ) {
    (self.schema, self.ledger, self.pool) = (schema, ledger, pool)
    (self.log, self.onChange) = (log, onChange)
  }

  /// The table of all mirrors about views.
  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.views(
      mirror bigint NOT NULL, tab text NOT NULL,
      filled boolean NOT NULL DEFAULT false,  -- the copy has been compared with the view
      compared boolean NOT NULL DEFAULT false,-- and then the space with the copy
      reason text NOT NULL DEFAULT '',        -- why not all rows travel
      PRIMARY KEY (mirror, tab));
    """

  /// Compares the copies that are due, each in a transaction of its own.
  ///
  /// - Parameters:
  ///   - sql: the mirror's tables; others than views are skipped.
  ///   - all: whether each view is due.
  func refresh(_ sql: [MirrorSQL], all: Bool = false) async {
    await storeReasons()
    let views = sql.filter { $0.view != nil }
    let order = state.withLock { ViewSchedule.order(views.map(\.table.name), $0.schedules) }
    for name in order where !Task.isCancelled {
      for sql in views where sql.table.name == name {
        if let view = sql.view { await refresh(sql, view, all ? nil : views.count) }
      }
    }
    // A process may look once only.
    await storeReasons()
  }

  /// - Parameter count: the number of views; `nil` if the view is due.
  private func refresh(_ sql: MirrorSQL, _ view: String, _ count: Int?) async {
    let name = sql.table.name
    let schedule = state.withLock { $0.schedules[name] ?? ViewSchedule() }
    var present = ""
    do {
      present = try await pool.run { try self.state(sql, view, $0) }
      if let count, !schedule.isDue(present, at: .now, among: count) { return }
      let (isFirst, reason) = try await pool.run { try self.compare(sql, view, $0) }
      let state = present
      change(name) { $0.record(state, at: .now) }
      // The comparison has stored it.
      self.state.withLock { $0.unstored[name] = nil }
      report(reason, of: name)
      if isFirst { onChange(true) }
    } catch {
      let state = present
      guard let reason = change(name, { $0.record(error, state, at: .now) }) else { return }
      self.state.withLock { $0.unstored[name] = reason }
      await storeReasons()
      report(reason, of: name)
    }
  }

  /// Stores the reasons for the status. A failure is tried again with the next look.
  private func storeReasons() async {
    let ledger = ledger
    for (name, reason) in state.withLock({ $0.unstored }).sorted(by: { $0.key < $1.key }) {
      do {
        _ = try await pool.run { try ledger.store(reason, of: name, isFilled: false, $0) }
        state.withLock { $0.unstored[name] = nil }
      } catch {
        continue
      }
    }
  }

  private func change<Value>(_ view: Name, _ body: (inout ViewSchedule) -> Value) -> Value {
    state.withLock { body(&$0.schedules[view, default: ViewSchedule()]) }
  }

  private func report(_ reason: String?, of view: Name) {
    let former = state.withLock { state in
      defer { state.reasons[view] = reason }
      return state.reasons[view]
    }
    if former == reason { return }
    if let reason {
      log("error", "view \(view): \(reason)")
    } else {
      log("view", "\(view) works again")
    }
    onChange(false)
  }

  private static let limits = "\(ViewSchedule.limit); SET LOCAL lock_timeout = '2s'"

  private func state(
    _ sql: MirrorSQL, _ view: String, _ connection: PostgresConnection
  ) throws -> String {
    try connection.transaction { connection in
      try connection.execute(Self.limits)
      try connection.execute(single: ViewSQL(sql: sql).lock(view))
      return try connection.query(.once(ViewSQL.state)).first?.text(0) ?? ""
    }
  }

  /// Gives the copy the rows of the view. Returns `true` if they have to be compared with those of the
  /// space, and the reason if not all rows travel.
  private func compare(
    _ sql: MirrorSQL, _ view: String, _ connection: PostgresConnection
  ) throws -> (isFirst: Bool, reason: String?) {
    try connection.transaction { connection in
      try connection.execute("\(Self.limits); SET LOCAL row_security = off")
      let read = ViewSQL(sql: sql)
      try connection.execute(single: read.lock(view))
      change(sql.table.name) { $0.begin(at: .now) }
      let found = try CompanyReader(connection: connection, schema: schema)
        .table(sql.table.name.text, sql.table.adoption?.view)
      let row = try connection.query(.once(try read.refresh(view, found))).first
      let reason = try row.flatMap { try Self.reason($0) }
      let isFirst = try ledger.store(
        reason ?? "", of: sql.table.name, isFilled: true, connection)
      if isFirst {
        _ = try connection.query(
          .once(
            "UPDATE ferry_mirror.adopted SET rows = $3, total = $3 WHERE mirror = $1 AND tab = $2"),
          [.int8(ledger.number), .text(sql.table.name.text), .int8(try row?.int8(1) ?? 0)])
      }
      return (isFirst, reason)
    }
  }

  /// Returns the reason if not all rows travel, as a comparison reports them.
  private static func reason(_ row: PostgresRow) throws -> String? {
    var reasons: [String] = []
    let (keys, unfit) = (try row.int8(2), try row.int8(5))
    if keys > 0 {
      reasons.append(
        AmbiguousRows(keys: keys, first: try row.array(3, of: String.self), rows: try row.int8(4))
          .reason)
    }
    if unfit > 0 {
      reasons.append(
        UnfitRows(rows: unfit, fault: try row.text(6), first: try row.array(7, of: String.self))
          .reason)
    }
    return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
  }
}

/// A view whose changes do not all reach the space.
package struct FailingView: Sendable, Equatable {
  package var name: String
  package var reason: String
}

/// The views of a mirror in the ledger. All calls block.
extension MirrorLedger {
  /// Stores the result of a comparison.
  ///
  /// - Parameters:
  ///   - reason: why not all rows travel; empty if all do.
  ///   - isFilled: whether the copy has the rows of the view.
  /// - Returns: `true` if the copy has them, and was never compared with the rows of the space.
  fileprivate func store(
    _ reason: String, of view: Name, isFilled: Bool, _ connection: PostgresConnection
  ) throws -> Bool {
    let isCompared = try connection.query(
      .once("SELECT compared FROM ferry_mirror.views WHERE mirror = $1 AND tab = $2"),
      [.int8(number), .text(view.text)]
    ).first?.bool(0)
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.views AS v (mirror, tab, filled, reason) VALUES ($1, $2, $3, $4)
        ON CONFLICT (mirror, tab) DO UPDATE
          SET filled = v.filled OR excluded.filled, reason = excluded.reason
        WHERE (v.filled, v.reason) IS DISTINCT FROM (v.filled OR excluded.filled, excluded.reason)
        """),
      [.int8(number), .text(view.text), .bool(isFilled), .text(Self.storable(reason))])
    return isFilled && isCompared != true
  }

  /// Returns the views whose copies have been compared.
  func filledViews(_ connection: PostgresConnection) throws -> Set<Name> {
    Set(
      try connection.query(
        .once("SELECT tab FROM ferry_mirror.views WHERE mirror = $1 AND filled"), [.int8(number)]
      ).map { Name(try $0.text(0)) })
  }

  /// Returns the views whose copies have rows, and were never compared with those of the space.
  func uncomparedViews(_ connection: PostgresConnection) throws -> Set<Name> {
    Set(
      try connection.query(
        .once("SELECT tab FROM ferry_mirror.views WHERE mirror = $1 AND filled AND NOT compared"),
        [.int8(number)]
      ).map { Name(try $0.text(0)) })
  }

  /// Records a comparison of copies with the rows of the space.
  func recordComparison(of views: Set<Name>, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.views SET compared = true WHERE mirror = $1 AND tab = ANY($2)"),
      [.int8(number), .array(PostgresArray(views.map(\.text).sorted().map(Optional.init)))])
  }

  /// Returns the views whose changes do not all reach the space.
  func failingViews(_ connection: PostgresConnection) throws -> [FailingView] {
    try connection.query(
      .once(
        "SELECT tab, reason FROM ferry_mirror.views WHERE mirror = $1 AND reason <> '' ORDER BY tab"
      ),
      [.int8(number)]
    ).map { FailingView(name: try $0.text(0), reason: try $0.text(1)) }
  }

  /// Removes the copies of views.
  var dropCopies: String {
    """
    DO '
      DECLARE found record;
      BEGIN
        FOR found IN SELECT oid::regclass AS target FROM pg_class
          WHERE relnamespace = ''ferry_mirror''::regnamespace AND relkind = ''r''
            AND relname ~ ''^view_\(number)_''
        LOOP
          EXECUTE format(''DROP TABLE %s'', found.target);
        END LOOP;
      END'
    """
  }
}

extension MirrorConfiguration {
  /// Returns the names of views whose copies lack all rows yet, in order.
  func unfilledViews(
    _ ledger: MirrorLedger, _ connection: PostgresConnection
  ) throws -> [String] {
    let views = adoptions.filter { $0.value.view != nil }.keys.sorted()
    if views.isEmpty { return [] }
    let filled = try ledger.filledViews(connection)
    return views.filter { !filled.contains(Name($0)) }
  }
}

extension MirrorParts {
  /// Returns the views whose copies lack all rows yet: the space's rows of them stay as they are.
  func unfilledViews() async throws -> Set<Name> {
    let views = Set(sql.filter { $0.view != nil }.map(\.table.name))
    if views.isEmpty { return [] }
    let ledger = ledger
    return views.subtracting(try await pool.run { try ledger.filledViews($0) })
  }
}

extension MirrorRounds {
  /// Returns the rows that the mirror only reads; empty before the first round.
  var views: [MirrorSQL] {
    file.withLock { $0 }.map { parts($0).sql.filter { $0.view != nil } } ?? []
  }

  /// Compares tables with the rows of the space, and writes these to them: copies of views that were
  /// never compared, or all. A copy without rows yet is left out.
  func compareRows(_ file: MirrorFile, all: Bool) async throws {
    let (parts, ledger) = (parts(file), ledger)
    let hasViews = parts.sql.contains { $0.view != nil }
    let views = hasViews ? try await pool.run { try ledger.uncomparedViews($0) } : []
    if !all, views.isEmpty { return }
    if all {
      // No comparison sees unsent rows. A restored file may have changes that the space has by now.
      try await pool.run { try ledger.unsent.sendWhole($0) }
      try await replica.write { try UnsentChanges(database: $0).forgetAll() }
    }
    _ = try await MirrorComparison(parts: parts)
      .compare(repairing: .tables, of: all ? nil : views)
    if !views.isEmpty { try await pool.run { try ledger.recordComparison(of: views, $0) } }
  }

  /// Makes the next round prepare both sides again: the first rows of a copy are there.
  func prepareAgain() { isChanged.withLock { $0 = true } }

  /// Returns `true` once after ``prepareAgain()``.
  func endChange() -> Bool {
    isChanged.withLock { isChanged in
      defer { isChanged = false }
      return isChanged
    }
  }
}
