import FerryProtocol

/// What pruning one space did.
package struct PruneResult: Sendable, Equatable {
  package var rows = PrunedRows()
  package var floor: SpaceFloor
  /// Another server was at it; what it leaves is done in the next run.
  package var isBusy = false

  package init(floor: SpaceFloor) { self.floor = floor }
}

/// How far a space's history has been gone through.
package struct PruneProgress: Sendable, Equatable {
  package let reached: SequenceNumber
  /// The last operation that goes.
  package let end: SequenceNumber
}

/// What one run over all spaces did.
package struct PruneRun: Sendable, Equatable {
  package var rows = PrunedRows()
  package var isBusy = false
  /// Milliseconds since all up to the floor had arrived, in the space where that is the longest
  /// ago; `nil` while no space has a floor.
  package var historyAge: Int64?
  /// Rows that this run and earlier ones have deleted, and whose room was not given back yet.
  package var unreclaimed = 0
  package var duration = Duration.zero

  package init() {}
}

extension ServiceLog {
  /// A line for a run; at debug level where nothing went.
  func write(_ run: PruneRun) {
    let rows = run.rows
    let counts =
      "\(rows.operations) operations, \(rows.tombstones) tombstones, \(rows.parked) parked packets"
    let milliseconds = run.duration / .milliseconds(1)
    let detail = "\(counts) in \(Int(milliseconds)) ms"
    if run.isBusy {
      write(.debug, "another server prunes", detail: detail)
    } else {
      write(rows.count > 0 ? .info : .debug, "pruned", detail: detail)
    }
  }
}
