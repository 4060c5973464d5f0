import FerryConformance
import FerryProtocol

/// Writes a history as a server does, for oracles to judge and tests to falsify.
struct HistoryMaker {
  static let epoch = Epoch(7)

  private(set) var history: [HistoryEntry] = []
  private(set) var records: [RecordKey: RecordState] = [:]
  private var forgotten: [ForgottenRecord] = []
  private var made: UInt64 = 0

  var server: ServerEvidence {
    var server = ServerEvidence(
      head: SequenceNumber(history.count), epoch: Self.epoch, history: history, records: records,
      buffered: 0)
    server.forgotten = forgotten
    return server
  }

  static func device(_ number: UInt64) -> DeviceID {
    DeviceID(UniqueID(high: 0xDE71_CE00_0000_7000, low: number | 1 << 63))
  }

  static func time(_ time: UInt64) -> HybridTimestamp { HybridTimestamp(rawValue: time << 16) }

  /// Returns an operation, recorded by a device at a time and not sent yet.
  mutating func operation(
    _ kind: OperationKind, _ record: String, at time: UInt64, _ columns: [Name: Value] = [:],
    table: String = "notes"
  ) -> LocalOperation {
    made += 1
    return LocalOperation(
      id: OperationID(UniqueID(timestamp: Self.time(time), random: made)),
      key: RecordKey(table: table, record: record), kind: kind,
      columns: columns.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) })
  }

  /// Takes an operation in. `earlier`: columns merged into it, with their times.
  mutating func take(
    _ operation: LocalOperation, by device: UInt64, base: SequenceNumber = 0,
    earlier: [Name: (Value, UInt64)] = [:]
  ) {
    var sent = SyncOperation(
      id: operation.id, key: operation.key, kind: operation.kind, time: operation.time,
      columns: operation.columns, base: base, increments: operation.increments)
    for (name, (value, time)) in earlier.sorted(by: { $0.key < $1.key }) {
      sent.columns.append(Column(name, value))
      sent.columnTimes[name] = Self.time(time)
    }
    let sequence = SequenceNumber(history.count) + 1
    let author = Self.device(device)
    let outcome = records[operation.key, default: RecordState()].merge(
      sent, stamp: Stamp(time: sent.time, device: author), sequence: sequence)
    history.append(
      HistoryEntry(
        sequence: sequence, id: sent.id, device: author, key: sent.key, kind: sent.kind,
        time: sent.time, base: base, columns: sent.columns, columnTimes: sent.columnTimes,
        outcome: outcome, increments: sent.increments))
  }

  /// Prunes all present operations, and a record.
  mutating func prune(_ record: String, table: String = "notes") {
    let (key, head) = (RecordKey(table: table, record: record), SequenceNumber(history.count))
    records[key] = nil
    forgotten.append(ForgottenRecord(key: key, head: head))
    for index in history.indices where history[index].prunedAt == nil {
      history[index].prunedAt = head
    }
  }

  /// Records an operation and adds it at once.
  @discardableResult
  mutating func add(
    _ kind: OperationKind, _ record: String, by device: UInt64, at time: UInt64,
    _ columns: [Name: Value] = [:], base: SequenceNumber = 0, table: String = "notes"
  ) -> LocalOperation {
    let operation = operation(kind, record, at: time, columns, table: table)
    take(operation, by: device, base: base)
    return operation
  }

  /// Returns the evidence of a device that has applied everything, or the given rows.
  func replica(_ device: UInt64, _ tables: [TableRows]? = nil) -> ReplicaEvidence {
    ReplicaEvidence(
      device: Self.device(device), rows: ReplicaRows(tables ?? self.tables),
      applied: SequenceNumber(history.count), epoch: Self.epoch, pending: [], unconfirmed: 0,
      waiting: 0, refused: 0)
  }

  private static let columns: [Name: [Name]] = [
    "beats": ["n"], "items": ["list", "label", "done"], "ledger": ["txn", "size", "place"],
    "lists": ["name"], "notes": ["title", "body", "stars"], "tallies": ["votes"],
  ]

  /// The existing records, as rows.
  var tables: [TableRows] {
    Self.columns.keys.sorted().map { name in
      let columns = Self.columns[name] ?? []
      var table = TableRows(name: name, columns: columns)
      for (key, state) in records.sorted(by: { $0.key < $1.key })
      where key.table == name && state.isAlive {
        table.append(
          key.record,
          columns.map { column in state.columns.first { $0.name == column }?.value ?? .null })
      }
      return table
    }
  }

  func final(_ replicas: [String: ReplicaEvidence] = [:]) -> FinalEvidence {
    FinalEvidence(server: server, replicas: replicas)
  }

  /// Returns a history in which two devices insert, edit, merge, delete and revive.
  static func busy() -> HistoryMaker {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "first", "stars": 1])
    maker.add(.insert, "b", by: 2, at: 11, ["title": "other"], base: 1)
    maker.add(.update, "a", by: 2, at: 20, ["title": "theirs"], base: 2)
    maker.add(.update, "a", by: 1, at: 21, ["title": "mine", "body": .null], base: 2)
    maker.add(.update, "a", by: 2, at: 15, ["stars": 5], base: 2)
    maker.add(.delete, "b", by: 1, at: 30, base: 5)
    maker.add(.update, "b", by: 2, at: 25, ["title": "too late"], base: 3)
    maker.add(.insert, "b", by: 2, at: 40, ["title": "again"], base: 7)
    maker.add(.delete, "a", by: 2, at: 16, base: 1)
    maker.add(.delete, "a", by: 2, at: 50, base: 3)
    return maker
  }
}

extension Oracle {
  /// Returns the violations found by the oracle in events and an end.
  static func found(
    _ oracle: Self, _ events: [RunEvent] = [], _ final: FinalEvidence? = nil
  ) -> [String] {
    var oracle = oracle
    var found = events.flatMap { oracle.see($0) }
    if let final { found += oracle.judge(final) }
    return found.map(\.detail)
  }
}
