import FerryProtocol

extension DeviceID {
  /// Returns a device that sorts by `number`.
  static func sample(_ number: UInt64) -> DeviceID {
    DeviceID(UniqueID(high: 0x0192_0000_0000_7000, low: 0x8000_0000_0000_0000 | number))
  }
}

extension OperationID {
  static func sample(_ number: UInt64) -> OperationID {
    OperationID(UniqueID(high: 0x0193_0000_0000_7000, low: 0x8000_0000_0000_0000 | number))
  }
}

extension HybridTimestamp {
  /// Returns the time so many milliseconds after 1970.
  static func at(_ milliseconds: Int64) -> HybridTimestamp {
    HybridTimestamp(milliseconds: milliseconds)
  }
}

extension Stamp {
  static func at(_ milliseconds: Int64, _ device: UInt64) -> Stamp {
    Stamp(time: .at(milliseconds), device: .sample(device))
  }
}

/// One operation on a record, with an author: a short form of a merge's input.
struct Act {
  var operation: SyncOperation
  var device: DeviceID
  /// The time to which the server clamped the operation's.
  var clampedTo: HybridTimestamp?

  var stamp: Stamp { Stamp(time: clampedTo ?? operation.time, device: device) }

  /// - Parameters:
  ///   - time: In milliseconds; also makes the operation's id.
  ///   - times: The times at which single columns were written, if earlier.
  init(
    _ kind: OperationKind, at time: Int64, by device: UInt64 = 1, _ columns: [Column] = [],
    times: [Name: Int64] = [:], base: SequenceNumber = 0, clampedTo: Int64? = nil
  ) {
    operation = SyncOperation(
      id: .sample(UInt64(time)), key: RecordKey(table: "notes", record: "r"), kind: kind,
      time: .at(time), columns: columns, columnTimes: times.mapValues { .at($0) }, base: base)
    self.device = .sample(device)
    self.clampedTo = clampedTo.map { .at($0) }
  }

  static func insert(
    at time: Int64, by device: UInt64 = 1, _ columns: [Column], times: [Name: Int64] = [:],
    base: SequenceNumber = 0
  ) -> Act {
    Act(.insert, at: time, by: device, columns, times: times, base: base)
  }

  static func update(
    at time: Int64, by device: UInt64 = 1, _ columns: [Column], times: [Name: Int64] = [:],
    base: SequenceNumber = 0
  ) -> Act {
    Act(.update, at: time, by: device, columns, times: times, base: base)
  }

  static func delete(at time: Int64, by device: UInt64 = 1, base: SequenceNumber = 0) -> Act {
    Act(.delete, at: time, by: device, base: base)
  }
}

extension RecordState {
  /// Merges acts at sequences 1, 2, 3, …
  init(_ acts: [Act]) {
    self.init()
    for (index, act) in acts.enumerated() { _ = merge(act, at: Int64(index + 1)) }
  }

  mutating func merge(_ act: Act, at sequence: SequenceNumber) -> Outcome {
    merge(act.operation, stamp: act.stamp, sequence: sequence)
  }

  /// The record as a reader sees it: `nil` if it does not exist.
  var row: [Name: Value]? {
    guard isAlive else { return nil }
    return Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.value) })
  }

  /// The state without the places in the order: every order of arrival has to agree in it.
  var registers: RecordState {
    var state = self
    state.inserted?.sequence = 0
    state.inserted?.origin = 0
    state.deleted?.sequence = 0
    state.deleted?.origin = 0
    for index in state.columns.indices {
      state.columns[index].sequence = 0
      state.columns[index].origin = 0
      state.columns[index].shared = 0
    }
    return state
  }

  /// Returns a device's row after it has applied this change.
  func laid(over row: [Name: Value]?) -> [Name: Value]? {
    if deleted != nil && !isAlive { return nil }
    let columns = Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.value) })
    if inserted != nil { return columns }
    return (row ?? [:]).merging(columns) { _, new in new }
  }
}
