import FerryProtocol

/// The rows to delete in one slice, and their order; pure.
///
/// Operations go first, then tombstones and notices. Rows of devices need the space's lock. A slice
/// reaches them only if it deleted nothing else, so no writer can wait for it and block it.
struct PruneWork {
  /// The most buffered packets deleted in one slice: each may have 8 MiB.
  static let bufferedRows = 50
  /// The most devices forgotten in one slice, and the most chains trimmed.
  static let deviceRows = 500

  let retentionHorizon: SequenceNumber
  /// The operations to delete; empty if none are left.
  let operations: Range<SequenceNumber>
  private let rowsMax: Int
  /// The rows deleted so far.
  var rows = PrunedRows()

  /// - Parameter first: The first operation of the space if the slice does not know the start;
  ///   `nil` if there is none.
  init(_ slice: PruneSlice, retentionHorizon: SequenceNumber, first: SequenceNumber?) {
    self.retentionHorizon = retentionHorizon
    rowsMax = slice.rows
    // The operation at the retention horizon stays: cursors at the horizon are checked against it.
    let start = slice.after.map { $0 + 1 } ?? first ?? retentionHorizon
    let end = min(retentionHorizon, start + SequenceNumber(slice.rows))
    operations = min(start, end)..<end
  }

  /// Tombstones and notices that may still go.
  var room: Int64 {
    operations.upperBound < retentionHorizon ? 0 : Int64(max(0, rowsMax - rows.count))
  }

  /// True if rows of devices go now.
  var reachesDevices: Bool {
    operations.upperBound >= retentionHorizon && rows.count == rows.buffered
  }

  /// True if devices are forgotten and chains are trimmed. While all history is stored, each
  /// operation is known by identifier, and nothing is forgotten.
  var forgetsDevices: Bool { reachesDevices && retentionHorizon > 0 }

  /// The result of the slice.
  var step: PruneStep {
    .pruned(
      rows, reached: operations.upperBound - 1,
      isLast: reachesDevices && rows.buffered < Self.bufferedRows
        && rows.devices < Self.deviceRows)
  }
}
