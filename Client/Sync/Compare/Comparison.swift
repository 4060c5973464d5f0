import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Compares a replica with its space. Reads all rows, compares hash trees from their roots down,
/// and checks each record that may differ (SPEC.md §16).
///
/// The point of comparison is the cursor after a pull; it does not move while the sync lock is
/// held. Later writes of others make nodes differ. The verifier skips such records, because their
/// sequence is above the cursor. So it ends however busy the server is.
struct Verifier: Sendable {
  let engine: SyncEngine
  let source: RowSource
  let api: VerifyAPI
  let cursor: Cursor
  let progress: @Sendable (VerifyProgress) -> Void

  /// The number of leaves with records in memory at once.
  private static let leavesAtOnce = 4_096
  /// The number of leaves in one request.
  private static let leavesPerRequest = 64

  /// Compares all tracked tables except upload-only ones.
  func run() async throws -> VerifyReport {
    var report = VerifyReport(cursor: cursor)
    report.faults = try await engine.thread.run { try $0.tableFaults() }
    let known = try await engine.thread.run { try $0.tracked.names() }
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

  // MARK: One table

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

  /// The records to look at.
  enum Selection {
    /// Records that may differ and have no pending operations.
    case settled
    /// These, and all records with pending operations, also those edited by the user meanwhile.
    case all
  }

  /// Calls `body` with records that may differ, a limited number at a time, each once.
  ///
  /// - Returns: The number of rows read.
  func forEachSuspect(
    of root: DigestAnswer.TableDigest, _ selection: Selection,
    _ report: inout VerifyReport,
    _ body: ([RecordKey], inout VerifyReport) async throws -> Void
  ) async throws -> Int {
    let (sums, pending) = try await scan(root.table) { scan in
      let sums = try scan.sums {
        progress(VerifyProgress(phase: .reading, completed: $0, total: max($0, root.records)))
      }
      return (sums, scan.pending)
    }
    report.pending += pending.count
    if selection == .all { try await body(pending.sorted(), &report) }
    let leaves = try await leaves(of: root, sums, &report)
    var start = 0
    while start < leaves.count {
      let part = Array(leaves[start..<min(start + Self.leavesAtOnce, leaves.count)])
      let found = try await suspects(in: part, of: root.table, selection, &report)
      try await body(selection == .all ? found.filter { !pending.contains($0) } : found, &report)
      start += part.count
    }
    return sums.recordCount
  }

  private func leaves(
    of root: DigestAnswer.TableDigest, _ sums: DigestSums, _ report: inout VerifyReport
  ) async throws -> [Int] {
    var descent = DigestDescent(ours: sums, theirs: root.digest)
    var list = DigestList()
    while !descent.isDone {
      let questions = descent.questions(limit: DigestQuery.nodesMax)
      let nodes = try await nodes(questions, of: root.table, &report, &list)
      descent.apply(
        nodes.compactMap { node in
          if case .children(let children) = node.digests { (node.node, children) } else { nil }
        })
    }
    return descent.leaves
  }

  /// Returns records that may differ.
  private func suspects(
    in leaves: [Int], of table: Name, _ selection: Selection, _ report: inout VerifyReport
  ) async throws -> [RecordKey] {
    let wanted = Set(leaves)
    let (ours, pending) = try await scan(table) { (try $0.digests(of: wanted), $0.pending) }
    var theirs: [RecordKey: Digest] = [:]
    var waiting = leaves[...]
    var list = DigestList()
    while !waiting.isEmpty {
      let asked = waiting.prefix(Self.leavesPerRequest).map { DigestNode.leaf($0) }
      let nodes = try await nodes(asked, of: table, &report, &list)
      for node in nodes {
        guard case .records(let records) = node.digests else { continue }
        for record in records {
          theirs[RecordKey(table: table, record: record.record)] = record.digest
        }
      }
      waiting = waiting.dropFirst(list.after == nil ? nodes.count : nodes.count - 1)
      progress(
        VerifyProgress(
          phase: .comparing, completed: leaves.count - waiting.count, total: leaves.count))
    }
    let settled = LeafComparison.differing(ours: ours, theirs: theirs)
      .filter { !pending.contains($0) }
    if selection == .settled { return settled }
    return settled + pending.filter { wanted.contains(DigestNode.leaf(of: $0.record)) }.sorted()
  }

  // MARK: One record

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
    // The server has no record of such a name, and refuses the question.
    let unusable = suspects.filter {
      NameRule.fault(inRecord: $0.record, limits: engine.limits) != nil
    }
    found += unusable.map { RecordDifference(key: $0, kind: .missingThere([])) }
    var waiting = suspects.filter { !unusable.contains($0) }[...]
    while !waiting.isEmpty {
      let changes = try await records(&waiting, &report)
      let judged = changes.filter { $0.sequence <= cursor.applied }
      report.changedMeanwhile += changes.count - judged.count
      found += try await differing(judged, of: table)
    }
    return found
  }

  /// Removes the next records from the list, and returns them as the server has them.
  func records(
    _ waiting: inout ArraySlice<RecordKey>, _ report: inout VerifyReport
  ) async throws -> [Change] {
    let keys = Array(waiting.prefix(engine.limits.recordsPerRequest))
    let (changes, traffic) = try await engine.retrying { try await api.records(keys) }
    report.add(traffic)
    guard !changes.isEmpty, changes.count <= keys.count,
      zip(keys, changes).allSatisfy({ $0 == $1.key })
    else {
      throw ReplicaError.unexpectedAnswer(status: 200, "records that Ferry did not request")
    }
    waiting = waiting.dropFirst(changes.count)
    return changes
  }

  /// Returns records different from their rows here.
  private func differing(
    _ changes: [Change], of table: Name
  ) async throws -> [RecordDifference] {
    try await scan(table) { scan in
      try changes.compactMap { change in
        guard !scan.pending.contains(change.key) else { return nil }
        let here = try scan.received(change.key)
        switch (here, change.state.isAlive) {
        case (nil, false): return nil
        case (nil, true): return RecordDifference(key: change.key, kind: .missingHere)
        case (let here?, false):
          return RecordDifference(key: change.key, kind: .missingThere(here))
        case (let here?, true):
          let columns = scan.comparison.differing(here: here, there: change.state.columns)
          if columns.isEmpty { return nil }
          return RecordDifference(key: change.key, kind: .different(columns))
        }
      }
    }
  }

  // MARK: Reading

  private func scan<T: Sendable>(
    _ table: Name, _ body: @escaping @Sendable (TableScan) throws -> T
  ) async throws -> T {
    let limits = engine.limits
    return try await source.read { try body(TableScan(table, on: $0, limits: limits)) }
  }

  func tables(
    _ report: inout VerifyReport
  ) async throws -> [DigestAnswer.TableDigest] {
    var found: [DigestAnswer.TableDigest] = []
    var list = DigestList()
    repeat {
      let query = DigestQuery(cursor: cursor, after: list.after)
      guard case .tables(let tables) = try await ask(query, &report, &list) else {
        throw ReplicaError.unexpectedAnswer(status: 200, "no digests of tables")
      }
      found += tables
    } while list.after != nil
    return found
  }

  private func nodes(
    _ nodes: [DigestNode], of table: Name, _ report: inout VerifyReport, _ list: inout DigestList
  ) async throws -> [DigestAnswer.Node] {
    let query = DigestQuery(cursor: cursor, table: table, nodes: nodes, after: list.after)
    guard case .nodes(let answers) = try await ask(query, &report, &list), !answers.isEmpty,
      answers.map(\.node) == Array(nodes.prefix(answers.count))
    else { throw ReplicaError.unexpectedAnswer(status: 200, "digests that Ferry did not request") }
    return answers
  }

  /// Repeats a request until the server's sums reach the cursor.
  private func ask(
    _ query: DigestQuery, _ report: inout VerifyReport, _ list: inout DigestList
  ) async throws -> DigestAnswer.Content {
    // Each answer reports the sums of at least some records; a space has not so many of them.
    var sums = ListBound(smallPagesMax: 10_000)
    while true {
      let (answer, traffic) = try await engine.retrying { try await api.digests(query) }
      report.add(traffic)
      guard answer.content == .behind else {
        try list.accept(answer, bytes: traffic.received)
        return answer.content
      }
      if let fault = sums.accept(
        reached: answer.folded, head: cursor.applied, bytes: traffic.received)
      {
        throw ReplicaError(digests: fault)
      }
      progress(
        VerifyProgress(
          phase: .summing, completed: Int(clamping: answer.folded),
          total: Int(clamping: cursor.applied)))
    }
  }
}

/// The connections that read the rows to compare.
enum RowSource: Sendable {
  /// Connections of their own, beside all writes.
  case readers(ReaderPool, SQLNamespace)
  /// The replica's own connection; writes wait meanwhile.
  case replica(ReplicaThread)

  /// Runs `body` in a transaction of the connection.
  func read<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws -> T {
    switch self {
    case .readers(let pool, let names):
      try await pool.read { database in
        guard names.number != 1 else { return try body(database.connection) }
        let ledger = SQLiteConnection(sharing: database.connection, namespace: names)
        // A connection that also writes has the functions of all spaces.
        if !pool.isShared { try KeyFunctions.install(on: ledger) }
        return try body(ledger)
      }
    case .replica(let thread):
      try await thread.run { file in try file.connection.transaction { try body(file.connection) } }
    }
  }
}

extension VerifyReport {
  fileprivate mutating func add(_ traffic: VerifyAPI.Traffic) {
    bytesSent += traffic.sent
    bytesReceived += traffic.received
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
    var pulled = SyncReport()
    let toPull: Progress = {
      progress(VerifyProgress(phase: .pulling, completed: $0.completed, total: $0.total))
    }
    try await pull(api, &pulled, nil, toPull)
    var report = try await verifier(api, source, progress).run()
    report.unreconciled = try await thread.run {
      try $0.currentUnrecordedTables().map(\.table)
    }
    try await countWaiting(&report)
    // A sync records the changes of a migration: a repair would remove them.
    let toRepair = report.differences.filter { !report.unreconciled.contains($0.key.table) }
    if repairing && !toRepair.isEmpty {
      try await thread.run { try $0.repair(toRepair) }
      try await pull(api, &pulled, nil, toPull)
      try await verifier(api, source, progress).recheck(&report)
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

  /// Returns a verifier at the cursor; the caller has pulled.
  func verifier(
    _ api: SyncAPI, _ source: RowSource,
    _ progress: @escaping @Sendable (VerifyProgress) -> Void = { _ in }
  ) async throws -> Verifier {
    guard let cursor = try await thread.run({ try $0.syncState().cursor }) else {
      throw ReplicaError.notConfigured
    }
    return Verifier(
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
