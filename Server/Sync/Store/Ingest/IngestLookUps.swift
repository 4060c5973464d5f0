import FerryProtocol

/// The operations and records to look up before a decision about a batch. A value without I/O.
///
/// Most packets continue their device's chain. So their operations are new, and so are the records
/// inserted under new identifiers. Such entries are not looked up at first: a *quick* decision
/// counts them as absent. If one exists after all, its row cannot be written a second time: the
/// database refuses the transaction, and the batch is decided again *thoroughly*. The batch is also
/// decided thoroughly if the quick decision does not apply every packet. A rejected or buffered
/// packet inserts no row that could violate a key.
///
///     var lookUps = IngestLookUps(packets, isThorough: false)
///     // load lookUps.records, the chains and the anchors …
///     if !lookUps.suffice(for: packets, in: context) { lookUps = .init(packets, isThorough: true) }
struct IngestLookUps {
  let isThorough: Bool
  private(set) var operations: [OperationID] = []
  /// Each once.
  private(set) var records: [RecordKey] = []
  /// The tables in which the packets may create records.
  let tables: Set<Name>
  /// The columns written by the packets, by table.
  let columns: [Name: Set<Name>]

  /// The difference between the times of an identifier and of its insert up to which the record
  /// counts as new, in milliseconds.
  private static let freshness: Int64 = 60_000

  /// - Parameters:
  ///   - isThorough: Whether everything is looked up.
  ///   - isFresh: Returns whether the record of an operation is taken for new otherwise.
  init(
    _ packets: [Packet], isThorough: Bool,
    isFresh: (SyncOperation) -> Bool = IngestLookUps.isFresh
  ) {
    self.isThorough = isThorough
    tables = packets.writtenTables
    columns = packets.writtenColumns
    let count = packets.reduce(0) { $0 + $1.operations.count + 1 }
    var wanted = Set<RecordKey>()
    if isThorough {
      operations.reserveCapacity(count)
      wanted.reserveCapacity(count)
    }
    for packet in packets {
      if isThorough, let dependency = packet.dependency { operations.append(dependency) }
      for operation in packet.operations {
        if isThorough { operations.append(operation.id) }
        if !isThorough && isFresh(operation) { continue }
        if wanted.insert(operation.key).inserted { records.append(operation.key) }
      }
    }
  }

  /// Returns `true` if the record of an operation most likely does not exist yet. It is inserted
  /// under a UUID with about the same time (RFC 9562 §5.7).
  static func isFresh(_ operation: SyncOperation) -> Bool {
    guard operation.kind == .insert,
      let id = operation.key.record.withBytes({ UniqueID(lowercase: $0) }), id.containsTime
    else { return false }
    let (distance, overflows) = id.timestamp.milliseconds.subtractingReportingOverflow(
      operation.time.milliseconds)
    return !overflows && distance.magnitude <= Self.freshness.magnitude
  }

  /// Returns `true` if a decision may begin: the look-ups are thorough, or each packet continues
  /// its device's chain and none waits.
  func suffice(for packets: [Packet], in context: IngestContext) -> Bool {
    if isThorough { return true }
    guard context.buffered.isEmpty else { return false }
    var tails: [DeviceID: OperationID] = [:]
    for packet in packets {
      guard packet.dependency == tails[packet.device] ?? context.chains[packet.device]?.tail
      else { return false }
      tails[packet.device] = packet.tail
    }
    return true
  }

  /// Returns whether a decision may be written.
  func suffice(for effects: IngestEffects) -> Bool {
    isThorough
      || effects.results.allSatisfy { result in
        guard case .accepted(let receipt, _) = result else { return false }
        return receipt.status == .applied
      }
  }
}
