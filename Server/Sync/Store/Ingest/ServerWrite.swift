import FerryProtocol

/// The server's own writes to records, which devices receive by their pull lists; pure.
package enum ServerWrite {
  /// The author of the server's own operations. No device has this identifier: versions of UUIDs
  /// are never 0.
  package static let author = DeviceID.server
}

extension IngestEffects {
  /// Assigns the next sequence and a time past every stamp in the space to an operation of the
  /// server. Inserts a missing record.
  ///
  /// - Parameters:
  ///   - columns: `nil` to delete the record.
  ///   - record: The present state; `nil` if there is none.
  ///   - random: For the operation's identifier.
  mutating func writeAsServer(
    _ key: RecordKey, _ columns: [Column]?, over record: RecordState?, now: Int64, random: UInt64
  ) {
    let base = space.head
    let time = space.tick(wall: now)
    let operation = SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: random)), key: key,
      kind: columns == nil ? .delete : record?.isAlive == true ? .update : .insert, time: time,
      columns: columns ?? [], base: base)
    let sequence = space.place(operation.id, at: time, base: base)
    var state = record ?? RecordState()
    _ = state.merge(
      operation, stamp: Stamp(time: time, device: ServerWrite.author), sequence: sequence)
    operations.append(
      OperationRow(
        id: operation.id, sequence: sequence, historyHash: space.historyHash,
        device: ServerWrite.author,
        key: key, kind: operation.kind, time: time, base: base,
        data: columns == nil ? nil : operation.encodedColumns(), times: nil, outcome: nil))
    records.append(
      RecordRow(
        key: key, sequence: sequence, wholeBelow: state.wholeBelow, isDead: !state.isAlive,
        state: state.stored(), isNew: record == nil))
  }
}
