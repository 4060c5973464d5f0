import FerryProtocol

/// Reports about the state of a replica.
struct ReplicaReports {
  let file: ReplicaFile

  func status() throws -> ReplicaStatus {
    try file.conflictLog.resolveQuestionsByOwnWrites()
    let (device, server) = try file.identity()
    let state = try file.syncState()
    return ReplicaStatus(
      device: device, deviceName: try file.deviceNames.own().name?.text, server: server,
      tables: try file.tables.tracked.names(), pending: try file.queue.count(),
      toApply: try file.stagedPages.changeCount() + file.kept.count(),
      conflicts: try file.conflicts.count(),
      questions: try file.conflicts.openCount(),
      deferred: try file.kept.refusedCount(), keptLocal: try file.kept.keptLocalCount(),
      quarantined: try file.quarantine.count(),
      unsent: try file.failedUploads.count(), buffered: try file.packets.bufferedCount(),
      cursor: state.cursor.map { Cursor(epoch: $0.epoch, applied: $0.applied) },
      head: state.head, lastSync: state.lastSync, clockOffset: state.clockOffset,
      lastRecovery: try file.log.lastRecovery(), tableFaults: try file.unrecordedWrites.faults(),
      warnings: try file.settings.warnings(),
      writesRefused: try file.settings.writesRefused()
    )
  }

  /// Returns the reasons to involve the user.
  func needs() throws -> Set<SyncActivity.Need> {
    var needs: Set<SyncActivity.Need> = []
    try file.conflictLog.resolveQuestionsByOwnWrites()
    if try file.conflicts.hasOpenQuestions() { needs.insert(.conflicts) }
    if try !file.quarantine.isEmpty() { needs.insert(.quarantine) }
    if try file.kept.refusedCount() > file.kept.keptLocalCount() { needs.insert(.deferredChanges) }
    if try file.failedUploads.hasMarks() { needs.insert(.failedUploads) }
    return needs
  }
}
