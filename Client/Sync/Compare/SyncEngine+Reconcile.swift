import FerryProtocol

/// The results of a comparison with the server, for tables with unrecorded writes.
struct Reconciled: Sendable {
  var tables: [(table: UnrecordedTable, rows: ReconciledRows)] = []
}

extension SyncEngine {
  /// Compares tables with the server, if writes to them may be unrecorded. Records rows and values
  /// found only on this device, and makes the next pull fetch the others (SPEC.md §25).
  ///
  /// It runs between a pull and a push: a pending edit of a row missing on the server would be lost
  /// without the row.
  func compare(_ tables: [UnrecordedTable], _ api: SyncAPI) async throws -> Reconciled {
    var result = Reconciled()
    do {
      for table in tables { result.tables.append((table, try await compare(table, api))) }
    } catch ReplicaError.refused(let problem) where problem.code.needsReplacement {
      // The server lost or forgot what the cursor follows meanwhile. The next sync compares again.
    }
    return result
  }

  private func compare(_ table: UnrecordedTable, _ api: SyncAPI) async throws -> ReconciledRows {
    try await thread.run { try $0.reconciler.checkKeys(of: table) }
    let comparison = try await comparison(api, .replica(thread))
    var report = VerifyReport(cursor: comparison.cursor)
    let root =
      try await comparison.tables(&report).first { $0.table == table.table }
      ?? DigestAnswer.TableDigest(table: table.table, records: 0, digest: .zero)
    var rows = ReconciledRows()
    _ = try await comparison.forEachSuspect(of: root, .all, &report) { suspects, report in
      try await comparison.fetch(suspects, &report) { changes, _ in
        rows += try await thread.run { try $0.reconciler.reconcile(changes, of: table) }
      }
    }
    let result = rows
    try await thread.run { try $0.reconciler.markCompared(table, result) }
    return rows
  }
}
