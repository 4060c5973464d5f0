import FerryProtocol

/// The result of pruning one space.
package struct PruneResult: Sendable, Equatable {
  package var rows = PrunedRows()
  package var horizon: RaisedHorizon
  /// Another server pruned at the same time; the rest is done in the next run.
  package var isBusy = false

  package init(horizon: RaisedHorizon) { self.horizon = horizon }
}

/// The progress of pruning through a space's history.
package struct PruneProgress: Sendable, Equatable {
  package let reached: SequenceNumber
  /// The last operation to delete.
  package let end: SequenceNumber
}

/// The result of one run over all spaces.
package struct PruneRun: Sendable, Equatable {
  package var rows = PrunedRows()
  package var isBusy = false
  /// Milliseconds since all operations up to the retention horizon had arrived, in the space with
  /// the greatest age; `nil` while no space has a horizon.
  package var historyAge: Int64?
  /// Rows deleted by this run and earlier ones, with room not reclaimed yet.
  package var unreclaimed = 0
  package var duration = Duration.zero

  package init() {}
}

extension ServiceLog {
  /// Writes a line for a run; at debug level if nothing was deleted.
  func write(_ run: PruneRun) {
    let rows = run.rows
    let counts =
      "\(rows.operations.grouped) operations, \(rows.tombstones.grouped) tombstones, "
      + "\(rows.buffered.grouped) buffered packets"
    let milliseconds = run.duration / .milliseconds(1)
    let detail = "\(counts) in \(Int(milliseconds)) ms"
    if run.isBusy {
      write(.debug, "another server is pruning", detail: detail)
    } else {
      write(rows.count > 0 ? .info : .debug, "pruned", detail: detail)
    }
  }
}
