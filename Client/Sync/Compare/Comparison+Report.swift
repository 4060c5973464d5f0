import FerryPersistence
import FerryProtocol
import FerrySQLite

/// A report about all tables, and the check after a repair.
extension Comparison {
  /// Compares all tracked tables except upload-only ones.
  func run() async throws -> VerifyReport {
    var report = VerifyReport(cursor: cursor)
    report.faults = try await engine.thread.run { try $0.unrecordedWrites.faults() }
    let known = try await engine.thread.run { try $0.tables.tracked.names() }
    let faulty = Set(report.faults.map(\.table))
    let tracked = try await source.read { connection in
      try connection.rows(
        """
        SELECT name FROM ferry_tables WHERE direction = 'two-way'
          AND local IN (SELECT name FROM sqlite_schema WHERE type = 'table') ORDER BY name
        """
      ) { $0.name(0) }
    }
    let roots = try await tables(&report)
    for root in roots where !NameRule.isReserved(table: root.table) {
      if known.contains(root.table) { continue }
      report.untracked.append(UntrackedTable(table: root.table, serverRecords: root.records))
    }
    for table in tracked.filter({ !faulty.contains($0) }) + (try await catalogue(among: roots)) {
      let root =
        roots.first { $0.table == table }
        ?? DigestAnswer.TableDigest(table: table, records: 0, digest: .zero)
      try await compare(root, &report)
    }
    return report
  }

  /// Returns the table of missions, if the space has published any.
  private func catalogue(
    among roots: [DigestAnswer.TableDigest]
  ) async throws -> [Name] {
    let table = MissionRecord.table
    let hasRows = try await source.read { connection in
      try connection.exists("SELECT 1 FROM ferry_missions LIMIT 1")
    }
    return hasRows || roots.contains { $0.table == table && $0.records > 0 } ? [table] : []
  }

  private func compare(
    _ root: DigestAnswer.TableDigest, _ report: inout VerifyReport
  ) async throws {
    let before = report.differences.count
    let rows = try await forEachSuspect(of: root, .settled, &report) { suspects, report in
      report.differences += try await judge(suspects, of: root.table, &report)
    }
    report.tables.append(
      TableComparison(
        table: root.table, rows: rows, serverRecords: root.records,
        differing: report.differences.count - before))
  }

  /// Marks differences that no longer exist.
  func recheck(_ report: inout VerifyReport) async throws {
    var left = Set<RecordKey>()
    for table in report.tables.map(\.table) {
      let keys = report.differences.map(\.key).filter { $0.table == table }
      left.formUnion(try await judge(keys, of: table, &report).map(\.key))
    }
    for index in report.differences.indices {
      report.differences[index].isRepaired = !left.contains(report.differences[index].key)
    }
  }

  /// Fetches the records themselves. Returns those with a real difference.
  private func judge(
    _ suspects: [RecordKey], of table: Name, _ report: inout VerifyReport
  ) async throws -> [RecordDifference] {
    var found: [RecordDifference] = []
    let unusable = try await fetch(suspects, &report) { changes, report in
      let judged = changes.filter { $0.sequence <= cursor.applied }
      report.changedMeanwhile += changes.count - judged.count
      found += try await differing(judged, of: table)
    }
    // The server has no record of such a name, and refuses the question.
    return unusable.map { RecordDifference(key: $0, kind: .missingThere([])) } + found
  }

  /// Returns records different from their rows here.
  private func differing(
    _ changes: [Change], of table: Name
  ) async throws -> [RecordDifference] {
    try await scan(table) { scan in
      try changes.compactMap { change in
        guard !scan.pending.contains(change.key) else { return nil }
        return scan.comparison.difference(
          here: try scan.received(change.key), there: change.state
        ).map { RecordDifference(key: change.key, kind: $0) }
      }
    }
  }
}

extension SyncEngine {
  /// Pulls, and compares this replica with the server. No other sync of the file runs meanwhile;
  /// the user can write.
  func verify(
    readers: ReaderPool, repairing: Bool, progress: @escaping @Sendable (VerifyProgress) -> Void
  ) async throws -> VerifyReport {
    let lock = try await surroundings.lock(path, options.lockPatience)
    defer { lock.release() }
    let api = try await api()
    let source = RowSource.readers(readers, FileSpaces.names(of: thread.space))
    let toPull: Progress = {
      progress(VerifyProgress(phase: .pulling, completed: $0.completed, total: $0.total))
    }
    try await catchUp(api, toPull)
    var report = try await comparison(api, source, progress).run()
    report.unreconciled = try await thread.run {
      try $0.unrecordedWrites.current().map(\.table)
    }
    try await countWaiting(&report)
    // A sync records the changes of a migration: a repair would remove them.
    let toRepair = report.differences.filter { !report.unreconciled.contains($0.key.table) }
    if repairing && !toRepair.isEmpty {
      try await thread.run { try LostValues($0).repair(toRepair) }
      try await catchUp(api, toPull)
      try await comparison(api, source, progress).recheck(&report)
    }
    try await thread.run { [report] file in
      try file.connection.transaction { try file.log("verify", report.summary) }
    }
    return report
  }

  /// The most reasons in a report.
  private static let reasonsMax = 20

  private func countWaiting(_ report: inout VerifyReport) async throws {
    (report.deferred, report.keptLocal, report.waiting) = try await thread.run {
      (
        try $0.kept.refusedCount(), try $0.kept.keptLocalCount(),
        try $0.kept.reasons(limit: Self.reasonsMax)
      )
    }
  }

  /// Returns a comparison at the cursor; the caller has pulled.
  func comparison(
    _ api: SyncAPI, _ source: RowSource,
    _ progress: @escaping @Sendable (VerifyProgress) -> Void = { _ in }
  ) async throws -> Comparison {
    guard let cursor = try await thread.run({ try $0.syncState().cursor }) else {
      throw ReplicaError.notConfigured
    }
    return Comparison(
      engine: self, source: source, api: VerifyAPI(api: api, limits: limits), cursor: cursor,
      progress: progress)
  }
}

extension VerifyReport {
  /// A summary in one line.
  public var summary: String {
    let repaired = differences.filter(\.isRepaired).count
    let found =
      differences.isEmpty
      ? "equal"
      : (differences.count == 1
        ? "1 record differs" : "\(differences.count.grouped) records differ")
        + (repaired > 0 ? ", \(repaired.grouped) repaired" : "")
    return
      "\(rowCount.counted("row")) of \(tables.count.counted("table")) at "
      + "\(cursor.applied.grouped): \(found)"
  }
}
