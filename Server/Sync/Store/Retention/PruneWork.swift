import FerryProtocol

/// The rows that one slice deletes, and their order; pure.
///
/// Operations go first, then tombstones and notices. Rows of devices need the space's lock. A slice
/// reaches them only if it deleted nothing else, so that no writer can wait for it and block it.
struct PruneWork {
  /// Buffered packets that one slice deletes at most: each may have 8 MiB.
  static let bufferedRows = 50
  /// Devices that one slice forgets at most, and chains that it trims at most.
  static let deviceRows = 500

  let retentionHorizon: SequenceNumber
  /// The operations to delete; empty if none are left.
  let operations: Range<SequenceNumber>
  private let rowsMax: Int
  /// The rows that were deleted so far.
  var rows = PrunedRows()

  /// - Parameter first: The first operation of the space if the slice does not know its start;
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

  /// Whether rows of devices go now.
  var reachesDevices: Bool {
    operations.upperBound >= retentionHorizon && rows.count == rows.buffered
  }

  /// Whether devices are forgotten and chains are trimmed. While all history is kept, each operation
  /// is known by its identifier, and nothing is forgotten.
  var forgetsDevices: Bool { reachesDevices && retentionHorizon > 0 }

  /// The result of the slice.
  var step: PruneStep {
    .pruned(
      rows, reached: operations.upperBound - 1,
      isLast: reachesDevices && rows.buffered < Self.bufferedRows
        && rows.devices < Self.deviceRows)
  }
}
