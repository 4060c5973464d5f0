import FerryProtocol
import FerrySQLite

/// Queries about the state of a replica.
extension ReplicaFile {
  func status() throws -> ReplicaStatus {
    try resolveQuestionsByOwnWrites()
    let (device, server) = try identity()
    let state = try syncState()
    return ReplicaStatus(
      device: device, deviceName: try deviceNames.own().name?.text, server: server,
      tables: try tracked.names(), pending: try queue.count(),
      toApply: try stagedPages.changeCount() + kept.count(),
      conflicts: try conflicts.count(),
      questions: try conflicts.openCount(),
      deferred: try kept.refusedCount(), keptLocal: try kept.keptLocalCount(),
      quarantined: try quarantine.count(),
      unsent: try failedUploads.count(), buffered: try packets.bufferedCount(),
      cursor: state.cursor.map { Cursor(epoch: $0.epoch, applied: $0.applied) },
      head: state.head, lastSync: state.lastSync, clockOffset: state.clockOffset,
      lastRecovery: try log.lastRecovery(), tableFaults: try tableFaults(),
      warnings: try warnings(),
      writesRefused: try writesRefused()
    )
  }

  /// Returns the reasons to involve the user.
  func needs() throws -> Set<SyncActivity.Need> {
    var needs: Set<SyncActivity.Need> = []
    try resolveQuestionsByOwnWrites()
    if try conflicts.hasOpenQuestions() { needs.insert(.conflicts) }
    if try !quarantine.isEmpty() { needs.insert(.quarantine) }
    if try kept.refusedCount() > kept.keptLocalCount() { needs.insert(.deferredChanges) }
    if try failedUploads.hasMarks() { needs.insert(.failedUploads) }
    return needs
  }

  /// Returns pending operations, oldest first.
  func pendingOperations(limit: Int) throws -> [PendingOperation] {
    try connection.rows("\(OperationTable.chain) ORDER BY seq LIMIT ?", limit) { row in
      var operation = try queue.pending(row)
      if operation.operation.kind == .update {
        operation.former = try queue.formerColumns(row, at: 9)
      }
      operation.dependency = row.optionalText(11).flatMap { UniqueID($0) }.map(OperationID.init)
      return operation
    }
  }

  /// Returns pulled changes waiting for the rest of their pull list, or for the schema.
  func waitingChanges(limit: Int) throws -> [WaitingChange] {
    var waiting: [WaitingChange] = []
    var place = try syncState().applied
    try stagedPages.forEach { page in
      while waiting.count < limit, let batch = try page.next() {
        for case .success(let change) in batch.prefix(limit - waiting.count) {
          let reason = "the rest of its pull list is missing"
          waiting.append(WaitingChange(change, dependency: place, reason: reason))
          place = change.sequence
        }
      }
    }
    for next in try kept.changes(.all, limit: max(0, limit - waiting.count)) {
      let reason =
        try next.reason ?? otherSpelling(of: next.change)
        ?? "its table or column does not exist here yet"
      waiting.append(WaitingChange(next.change, reason: reason))
    }
    return waiting
  }

  /// Returns the reason if a change is deferred because the table or column is spelled differently
  /// here, or another column has the name. `nil` for any other reason.
  private func otherSpelling(of change: Change) throws -> String? {
    let table = change.key.table
    guard let schema = try? schema(of: table) else { return nil }
    guard schema.name == table else {
      return
        "its table is \(table), but SQLite uses the existing table \(schema.name) for this name, and "
        + "the space has both. Write its rows to one of them"
    }
    for column in change.state.columns {
      let isKnown = schema.columns.contains { $0.name == column.name }
      if !isKnown, let own = schema.columns.first(where: { $0.local == column.name }) {
        return
          "the column \(own.local) here is the column \(own.name) of the space. To have the space's column "
          + "\(column.name), give the one here another name, and add \(column.name)"
      }
      let others = schema.keys.map(\.local) + schema.columns.map(\.name)
      guard let other = others.first(where: { $0.folded == column.name.folded }),
        other != column.name
      else { continue }
      return
        "SQLite uses the existing column \(other) for its column \(column.name), and the space has "
        + "both. To have its values here, replace the column: drop \(other), and add \(column.name)"
    }
    return nil
  }
}

extension WaitingChange {
  init(_ change: Change, dependency: SequenceNumber? = nil, reason: String) {
    let state = change.state
    let stamps = [state.inserted?.stamp, state.deleted?.stamp] + state.columns.map(\.stamp)
    let isDead = state.deleted != nil && !state.isAlive
    self.init(
      sequence: change.sequence, key: change.key,
      kind: isDead ? .delete : state.inserted != nil ? .insert : .update,
      columns: state.columns.map { Column($0.name, $0.value) },
      time: stamps.compactMap { $0?.time }.max() ?? .zero, dependency: dependency, reason: reason)
  }
}
