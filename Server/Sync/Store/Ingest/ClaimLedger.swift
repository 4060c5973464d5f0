import FerryProtocol

/// The holders of unique keys while a batch is applied. Freed and claimed keys are judged at the
/// end of a transaction, so two records may swap their values.
struct ClaimLedger {
  /// The changes of a transaction to one record of a table with unique keys.
  fileprivate struct Entry {
    let key: RecordKey
    let unique: [[Name]]
    let before: [UniqueClaim]
    var operations: [SyncOperation]
    /// The keys of the present state, after it has left the memory.
    var after: [UniqueClaim]?
  }

  private let schema: SpaceSchema?
  /// The holders in the store; a key without a look-up is absent.
  private let stored: [UniqueClaim: Name?]
  /// The holders as the batch has left them.
  private var changed: [UniqueClaim: Name?] = [:]
  /// The current transaction, in the order of the touched records.
  private var entries: [Entry] = []
  private var places: [RecordKey: Int] = [:]
  /// Keys to look up before anything is judged.
  private var unknown: Set<UniqueClaim> = []

  init(_ context: IngestContext) {
    schema = context.schema
    stored = context.holders
  }

  /// Keys to look up, sorted.
  var missing: [UniqueClaim] { unknown.sorted() }

  /// The rows for the store to write, sorted.
  var rows: [IngestEffects.ClaimRow] {
    changed.sorted { $0.key < $1.key }.compactMap { claim, record in
      if let known = stored[claim], known == record { return nil }
      return IngestEffects.ClaimRow(claim: claim, record: record)
    }
  }

  /// Returns `true` if the table has unique keys.
  func concerns(_ table: Name) -> Bool { !unique(in: table).isEmpty }

  private func unique(in table: Name) -> [[Name]] { schema?.tables[table]?.unique ?? [] }

  /// Records an operation on a record in the state `before`.
  mutating func record(_ operation: SyncOperation, before: RecordState) {
    let unique = unique(in: operation.key.table)
    if unique.isEmpty { return }
    if places[operation.key] == nil, before.isAlive, !operation.mayChange(unique) { return }
    if let place = places[operation.key] {
      entries[place].operations.append(operation)
      entries[place].after = nil
      return
    }
    places[operation.key] = entries.count
    entries.append(
      Entry(
        key: operation.key, unique: unique,
        before: before.claims(in: operation.key.table, unique), operations: [operation]))
  }

  /// Records the keys of a state before it leaves the memory.
  mutating func record(_ state: RecordState, of key: RecordKey) {
    guard let place = places[key] else { return }
    entries[place].after = state.claims(in: key.table, entries[place].unique)
  }

  /// Ends a transaction: frees and claims the keys of the records' present values. Returns the
  /// operations that claimed a key of another record, in the order of their records.
  mutating func finish(_ state: (RecordKey) -> RecordState?) -> [Refusal] {
    if entries.isEmpty { return [] }
    let after = entries.map { entry in
      entry.after ?? state(entry.key)?.claims(in: entry.key.table, entry.unique) ?? []
    }
    for (entry, after) in zip(entries, after) {
      for claim in entry.before where !after.contains(claim) {
        changed.updateValue(nil, forKey: claim)
      }
    }
    var refusals: [Refusal] = []
    for (entry, after) in zip(entries, after) {
      let taken = after.filter { !entry.before.contains($0) }
      if let refusal = claim(taken, entry) { refusals.append(refusal) }
    }
    entries = []
    places = [:]
    return refusals
  }

  private mutating func claim(_ claims: [UniqueClaim], _ entry: Entry) -> Refusal? {
    var refusal: Refusal?
    for claim in claims {
      guard let holder = changed[claim] ?? stored[claim] else {
        unknown.insert(claim)
        continue
      }
      if let holder, holder != entry.key.record {
        refusal = refusal ?? entry.refusal(of: claim, to: holder)
      } else {
        changed[claim] = entry.key.record
      }
    }
    return refusal
  }
}

extension ClaimLedger.Entry {
  /// Refuses the last operation that wrote the key.
  fileprivate func refusal(of claim: UniqueClaim, to holder: Name) -> Refusal? {
    let key = unique.first { UniqueClaim.stored(columns: $0) == claim.columns } ?? []
    let writer =
      operations.last { operation in
        operation.kind == .insert || operation.columns.contains { key.contains($0.name) }
      } ?? operations.last
    let names = key.map(\.text).joined(separator: ", ")
    return writer.map {
      Refusal($0, .uniqueTaken, "record \(holder) has the same \(names)", holder: holder)
    }
  }
}

extension SyncOperation {
  /// Returns `true` if it can change the values of a record's unique keys. An update of other
  /// columns does not, and the record may be large.
  package func mayChange(_ unique: [[Name]]) -> Bool {
    guard kind == .update, batch == nil else { return true }
    return columns.contains { column in unique.contains { $0.contains(column.name) } }
  }
}

extension IngestContext {
  /// Returns keys without a look-up that the packets will probably claim. So one look-up is enough
  /// for most batches. Keys decided otherwise by conflicts are found when the packets are applied.
  func claimsToLookUp(for packets: [Packet]) -> [UniqueClaim] {
    guard let schema, schema.tables.contains(where: { !$0.value.unique.isEmpty }) else { return [] }
    var wanted = Set<UniqueClaim>()
    var values: [RecordKey: [Name: Value]] = [:]
    for packet in packets {
      var touched: [RecordKey] = []
      for operation in packet.operations {
        let unique = schema.tables[operation.key.table]?.unique ?? []
        guard !unique.isEmpty, operation.kind != .delete, operation.batch == nil,
          known[operation.id] == nil,
          operation.mayChange(unique) || records[operation.key]?.isAlive != true
        else { continue }
        var columns = values[operation.key] ?? existingValues(of: operation.key)
        for column in operation.columns { columns[column.name] = column.value }
        values[operation.key] = columns
        touched.append(operation.key)
      }
      for key in touched {
        for columns in schema.tables[key.table]?.unique ?? [] {
          let claim = UniqueClaim(table: key.table, key: columns) { values[key]?[$0] }
          if let claim, holders[claim] == nil { wanted.insert(claim) }
        }
      }
    }
    return wanted.sorted()
  }

  private func existingValues(of key: RecordKey) -> [Name: Value] {
    var values: [Name: Value] = [:]
    for column in records[key]?.columns ?? [] { values[column.name] = column.value }
    return values
  }
}
