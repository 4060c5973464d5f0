import FerryProtocol

/// Decides which pending operations leave the queue with refused ones (SPEC.md §12).
///
/// These leave with a refused operation:
///
/// - the rest of its transaction,
/// - later operations on the same record (a batch is on no record),
/// - operations that refer to a record whose insert leaves,
/// - a later delete of a record that has references again without the operations that leave. On the
///   server it would leave orphans, which no replica can have. The records of a batch are not known
///   here: after it, all later deletes in the tables of its rows' parents leave, and a batch that
///   deletes leaves if any record of its table has references again.
///
/// Re-uploaded rows belong to no transaction of the user's: each is refused separately.
///
/// A pure machine. It reads all pending operations in order, until a pass finds no more. So the
/// time does not depend on the number of refusals.
struct RefusalSpread {
  /// A pending operation, as far as it matters here.
  struct Operation {
    let order: Int64
    let group: Int64
    let key: RecordKey
    let kind: OperationKind
    /// True if a row lost by the server is re-uploaded with it.
    var isReupload = false
    /// The records that the row refers to after it.
    var references: [RecordKey] = []
    /// The records that the row referred to before, as far as it refers to them no longer.
    var formerReferences: [RecordKey] = []
    /// Of a batch: the tables to whose records its rows may refer no longer.
    var formerParents: Set<Name> = []
    /// Whether it is a batch that deletes.
    var isBatchDelete = false
  }

  /// The refusal behind each leaving operation, by the place of the operation: of several refusals,
  /// the first.
  private(set) var leaving: [Int64: Int] = [:]
  /// The records of those operations.
  private(set) var keys: Set<RecordKey> = []

  /// The refusal for each transaction, and for each record with a leaving insert.
  private var groups: [Int64: Int] = [:]
  private var inserts: [RecordKey: Int] = [:]
  /// True if the current pass has found something.
  private var grew = false

  // The following hold for the operations seen by the current pass.

  /// The refusal for each record with a leaving operation.
  private var records: [RecordKey: Int] = [:]
  /// The refusal for each record with a new reference.
  private var referredAgain: [RecordKey: Int] = [:]
  /// For each table of which any record may be referred to again, the refusal.
  private var parentsAgain: [Name: Int] = [:]
  /// For each table with a record in ``referredAgain``, the refusal.
  private var referredTables: [Name: Int] = [:]
  /// The records with a leaving insert.
  private var unborn: Set<RecordKey> = []

  /// - Parameter refused: for each refusal, the places of the refused operation, and of others
  ///   merged with it.
  init(refused: [[Int64]]) {
    for (refusal, places) in refused.enumerated() {
      for place in places where leaving[place] == nil { leaving[place] = refusal }
    }
  }

  /// Shows the machine all pending operations, as often as needed.
  ///
  /// - Parameter forEach: passes each pending operation to the argument, in order.
  mutating func spread(over forEach: ((Operation) -> Void) throws -> Void) rethrows {
    guard !leaving.isEmpty else { return }
    var machine = self
    repeat {
      machine.beginPass()
      try forEach { machine.see($0) }
    } while machine.grew
    self = machine
  }

  private mutating func beginPass() {
    grew = false
    records = [:]
    referredAgain = [:]
    parentsAgain = [:]
    referredTables = [:]
    unborn = []
  }

  private mutating func see(_ operation: Operation) {
    guard let refusal = refusal(of: operation) else { return }
    let key = operation.key
    if operation.kind == .batch {
      for table in operation.formerParents {
        parentsAgain[table] = min(refusal, parentsAgain[table] ?? refusal)
      }
    } else {
      keys.insert(key)
      records[key] = min(refusal, records[key] ?? refusal)
    }
    Self.record(refusal, &leaving[operation.order], &grew)
    if !operation.isReupload { Self.record(refusal, &groups[operation.group], &grew) }
    if operation.kind == .insert {
      Self.record(refusal, &inserts[key], &grew)
      unborn.insert(key)
    }
    // A row that never reaches the server refers to nothing there.
    if unborn.contains(key) { return }
    for parent in operation.formerReferences {
      referredAgain[parent] = min(refusal, referredAgain[parent] ?? refusal)
      referredTables[parent.table] = min(refusal, referredTables[parent.table] ?? refusal)
    }
  }

  /// Returns the first refusal that removes an operation from the queue.
  private func refusal(of operation: Operation) -> Int? {
    var found = [leaving[operation.order], groups[operation.group], records[operation.key]]
    found += operation.references.map { inserts[$0] }
    if operation.kind == .delete {
      found += [referredAgain[operation.key], parentsAgain[operation.key.table]]
    }
    if operation.isBatchDelete {
      found += [referredTables[operation.key.table], parentsAgain[operation.key.table]]
    }
    return found.compactMap { $0 }.min()
  }

  /// Stores a refusal if it is earlier than the known one.
  private static func record(_ refusal: Int, _ place: inout Int?, _ grew: inout Bool) {
    if let known = place, known <= refusal { return }
    place = refusal
    grew = true
  }
}
