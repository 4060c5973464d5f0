import FerryProtocol

/// A record's size before a packet changes it.
struct RecordMeasure: Equatable {
  /// The bytes of the stored state, hidden columns included.
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

  /// Returns the reason if a record is too large now; `nil` if the size is permitted. A record that
  /// was too large before may become smaller.
  func excess(over before: RecordMeasure, _ limits: Limits) -> String? {
    if columns > limits.recordColumns, columns > before.columns {
      return "the record would have \(columns) columns; \(limits.recordColumns) are allowed"
    }
    if bytes > limits.recordStateBytes, bytes > before.bytes {
      return "the record would have \(bytes) bytes; \(limits.recordStateBytes) are allowed"
    }
    return nil
  }

  /// The bytes counted for quotas: none while the record is deleted.
  var livingBytes: Int64 { isAlive ? Int64(bytes) : 0 }
}

// The sizes of records, and their writers' use of the space.
extension Ingest {
  /// The approximate bytes of each row of the history besides the values.
  private static let rowBytes: Int64 = 256

  /// Remembers which operation of the packet wrote most to a record.
  mutating func recordWriter(_ operation: OperationID, of bytes: Int, at index: Int) {
    if let writer = records[index].writer, writer.bytes >= bytes { return }
    records[index].writer = (operation, bytes)
  }

  /// Ends a packet: measures the touched records, and charges the sender.
  mutating func finish(_ owner: Principal) {
    var (bytes, count) = (Int64(0), Int64(0))
    for index in touched {
      let before = records[index].measure
      let after = measure(index)
      if let excess = after.excess(over: before, context.limits), let writer = records[index].writer
      {
        let key = records[index].key
        refusals.append(
          Refusal(
            operation: writer.operation, code: .recordTooLarge, detail: excess, table: key.table,
            record: key.record))
      }
      bytes += after.livingBytes - before.livingBytes
      count += (after.isAlive ? 1 : 0) - (before.isAlive ? 1 : 0)
      records[index].measure = after
      records[index].writer = nil
    }
    touched = []
    countWritten()
    usage.charge(owner, bytes: bytes, records: count, written: written)
    written = 0
  }

  /// Returns a record's present size. Encodes the state unless already encoded.
  mutating func measure(_ index: Int) -> RecordMeasure {
    if let evicted = records[index].evicted { return evicted }
    let stored = records[index].stored ?? records[index].state.stored()
    records[index].stored = stored
    return RecordMeasure(records[index].state, bytes: stored.count)
  }

  /// Adds uncounted rows of the history and notices to the current packet's.
  mutating func countWritten() {
    for index in counted.operations..<effects.operations.count {
      written += Self.rowBytes + effects.operations[index].byteCount
    }
    for row in effects.notices[counted.notices...] {
      written += Self.rowBytes + Int64(row.body.count)
    }
    counted = (effects.operations.count, effects.notices.count)
  }

  // MARK: Devices and buffered packets

  /// Returns the principal of a device of the batch.
  func owner(of device: DeviceID) -> Principal {
    effects.owners[device] ?? context.owners[device] ?? .anonymous
  }

  /// Counts the devices of the batch, and the buffered or released packets.
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
  /// The bytes of the names and values of all columns.
  var columnBytes: Int {
    columns.reduce(0) { $0 + $1.name.utf8.count + $1.value.byteCount }
  }
}

extension IngestEffects.OperationRow {
  /// The bytes of all texts and the rest besides numbers, wherever they are stored.
  fileprivate var byteCount: Int64 {
    Int64(
      (data?.count ?? 0) + omittedBytes + (times?.count ?? 0) + (outcome?.count ?? 0)
        + (marks?.count ?? 0))
  }
}
