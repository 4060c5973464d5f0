import FerryProtocol

/// A record's size before a packet changes it.
struct RecordMeasure: Equatable {
  /// The bytes of its state as it is stored, hidden columns included.
  var bytes = 0
  var columns = 0
  var isAlive = false

  init() {}

  /// - Parameter bytes: The bytes of the state as it is stored, if they are known already.
  init(_ state: RecordState, bytes: Int? = nil) {
    self.bytes = bytes ?? state.stored().count
    columns = state.columns.count
    isAlive = state.isAlive
  }

  /// The bytes that count for quotas: none while the record is deleted.
  var livingBytes: Int64 { isAlive ? Int64(bytes) : 0 }
}

// The sizes of records, and their writers' use of the space.
extension Ingest {
  /// The approximate bytes of each row of the history besides its values.
  private static let rowBytes: Int64 = 256

  /// Remembers which operation of the packet wrote most to a record. A delete writes nothing: it
  /// can always be applied.
  mutating func noteWriter(_ operation: SyncOperation, named batch: OperationID?, at index: Int) {
    if operation.kind == .delete { return }
    let bytes = operation.columnBytes
    if let writer = records[index].writer, writer.bytes >= bytes { return }
    records[index].writer = (operation.named(batch), bytes)
  }

  /// Ends a packet: measures the records that it touched, and charges its sender.
  ///
  /// - Parameters:
  ///   - operations: Rows of the history before the packet.
  ///   - notices: Notices before the packet.
  mutating func settle(_ owner: Principal, operations: Int, notices: Int) {
    var (bytes, count) = (Int64(0), Int64(0))
    for index in touched {
      let (state, before) = (records[index].state, records[index].measure)
      let encoded = state.stored()
      let after = RecordMeasure(state, bytes: encoded.count)
      if let refusal = refusal(of: records[index], after) { refusals.append(refusal) }
      bytes += after.livingBytes - before.livingBytes
      count += (after.isAlive ? 1 : 0) - (before.isAlive ? 1 : 0)
      records[index].measure = after
      records[index].encoded = encoded
      records[index].writer = nil
    }
    touched = []
    var written = Int64(0)
    for row in effects.operations[operations...] { written += Self.rowBytes + row.byteCount }
    for row in effects.notices[notices...] { written += Self.rowBytes + Int64(row.body.count) }
    usage.charge(owner, bytes: bytes, records: count, written: written)
  }

  /// Refuses the operation that wrote most to a record that is too large now. One that was too
  /// large before may become smaller.
  private func refusal(of record: TouchedRecord, _ after: RecordMeasure) -> Refusal? {
    guard let writer = record.writer else { return nil }
    let (limits, before) = (context.limits, record.measure)
    if after.columns > limits.recordColumns, after.columns > before.columns {
      return Refusal(
        writer.operation, .recordTooLarge,
        "the record would have \(after.columns) columns; \(limits.recordColumns) are allowed")
    }
    if after.bytes > limits.recordStateBytes, after.bytes > before.bytes {
      return Refusal(
        writer.operation, .recordTooLarge,
        "the record would have \(after.bytes) bytes; \(limits.recordStateBytes) are allowed")
    }
    return nil
  }

  // MARK: Devices and buffered packets

  /// Returns the principal that uses a device of the batch.
  func owner(of device: DeviceID) -> Principal {
    effects.owners[device] ?? context.owners[device] ?? .anonymous
  }

  /// Counts the devices that the batch brings, and the packets that it buffers or releases.
  mutating func countDevices() {
    usage.move(effects.owners, in: context)
    for key in effects.unbuffered {
      let packet = context.buffered.first { $0.key == key }
      usage.unbuffer(packet?.byteCount ?? 0, of: owner(of: key.device))
    }
    for index in plan.buffered {
      usage.buffer(packets[index].byteCount, of: owner(of: packets[index].packet.device))
    }
  }
}

extension SyncOperation {
  /// The bytes of its columns' names and values.
  var columnBytes: Int {
    columns.reduce(0) { $0 + $1.name.utf8.count + $1.value.byteCount }
  }
}

extension IngestEffects.OperationRow {
  /// The bytes of its texts and the rest besides numbers, wherever they are kept.
  fileprivate var byteCount: Int64 {
    Int64(
      (data?.count ?? 0) + omittedBytes + (times?.count ?? 0) + (outcome?.count ?? 0)
        + (marks?.count ?? 0))
  }
}
