import FerryProtocol

extension SyncEngine {
  /// Compares tables that may have unrecorded rows with the server. Records the rows and values
  /// that only this device has, sends them, and fetches the others (SPEC.md §25).
  ///
  /// It runs after a push: records with pending operations are left to the next sync.
  func reconcile(
    _ api: SyncAPI, _ report: inout SyncReport, _ progress: @escaping Progress
  ) async throws {
    let tables = try await thread.run { file in
      try file.noticeNewSchema()
      return try file.unrecordedTables()
    }
    if tables.isEmpty { return }
    try await pull(api, &report, progress)
    var results: [(table: UnrecordedTable, found: ReconciledRows)] = []
    for table in tables { results.append((table, try await compare(table, api))) }
    let recorded = results.reduce(0) { $0 + $1.found.recorded }
    report.recorded += recorded
    if recorded > 0 { try await push(api, &report, progress) }
    // The server may have new changes. The cursor passes them before the rows count as recorded.
    try await pull(api, &report, progress)
    report.unreconciled = try await thread.run { [results] file in
      for (table, found) in results { try file.endReconciling(table, found) }
      return try file.unrecordedTables().count
    }
  }

  private func compare(_ table: UnrecordedTable, _ api: SyncAPI) async throws -> ReconciledRows {
    let verifier = try await verifier(api, .replica(thread))
    var report = VerifyReport(cursor: verifier.cursor)
    let root =
      try await verifier.tables(&report).first { $0.table == table.table }
      ?? DigestAnswer.TableDigest(table: table.table, records: 0, digest: .zero)
    var found = ReconciledRows()
    _ = try await verifier.forEachSuspect(of: root, &report) { suspects, report in
      var waiting = suspects[...]
      while !waiting.isEmpty {
        let changes = try await verifier.records(&waiting, &report)
        found += try await thread.run { try $0.reconcile(changes, of: table) }
      }
    }
    found.left += report.pending
    return found
  }
}
