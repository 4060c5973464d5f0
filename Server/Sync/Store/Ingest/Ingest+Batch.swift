import FerryCryptography
import FerryProtocol

extension Ingest {
  /// Applies a batch: one entry of the history for itself, and one for each matching record at this
  /// place in the order. Each effect has the batch's stamp and a separate sequence. It merges like
  /// an update or delete of the record.
  mutating func expand(
    _ operation: SyncOperation, _ batch: Batch, of device: DeviceID
  ) throws {
    guard let keys = try matches(of: operation, batch) else {
      refusals.append(Refusal(tooExpensive: operation))
      return
    }
    var effect = operation
    effect.time = admitted(operation.time)
    let sequence = effects.space.place(operation.id, at: effect.time, base: operation.base)
    // The effects follow the batch, and change the history hash of the space.
    let historyHash = effects.space.historyHash
    let (place, ordinal) = (effects.operations.count, ordinal(at: sequence))
    var outcome = Outcome(records: 0)
    working?.expect(keys)
    for (ordinal, key) in keys.enumerated() {
      let id = OperationID(ofEffect: ordinal, of: operation.id, at: sequence)
      try apply(effect.effect(on: key.record, id: id, of: batch), of: device, for: operation.id)
      outcome.records = ordinal + 1
      if known[id]?.outcome.isOverruled == true { outcome.isOverruled = true }
    }
    known[operation.id] = KnownOperation(
      sequence: sequence, device: device, outcome: outcome, historyHash: historyHash)
    let row = IngestEffects.OperationRow(
      id: operation.id, sequence: sequence, historyHash: historyHash, device: device,
      key: operation.key,
      kind: .batch, time: effect.time, base: operation.base, data: operation.encodedBatch(batch),
      times: nil, outcome: outcome.encoded(), ordinal: ordinal)
    // Some of the effects may be written already.
    effects.operations.insert(row, at: min(place, effects.operations.count))
  }

  /// Returns the living records that match now, in the order of their bytes. Considers the stored
  /// records and the changes of earlier operations. Returns `nil` if the cost exceeds the rest of
  /// the packet's budget: the evaluation runs under the space's lock.
  private mutating func matches(
    of operation: SyncOperation, _ batch: Batch
  ) throws -> [RecordKey]? {
    guard let stored = context.matches[operation.id] else {
      preconditionFailure("a batch's matches have to be loaded first")
    }
    guard spend(batch.predicate.cost, times: records.count) else { return nil }
    var keys = stored.filter { recordIndex[$0] == nil }
    for index in records.indices where records[index].key.table == operation.key.table {
      try restore(index)
      let key = records[index].key
      if batch.predicate.matches(record: key.record, records[index].state) { keys.append(key) }
    }
    return keys.sorted()
  }
}

extension OperationID {
  /// Creates the id of a batch's effect on one record: the same each time the batch is applied at
  /// this place. A batch repeated by a copied device after the history was pruned has another
  /// place, and other effects. The id is a UUID of version 8 (RFC 9562 §5.8), which no device's
  /// operation has. It contains the batch's time, then bits of the SHA-256 of the batch's id, its
  /// place and the effect's number.
  init(ofEffect ordinal: Int, of batch: OperationID, at sequence: SequenceNumber) {
    let digest = SHA256.digest(of: "ferry batch \(batch) \(sequence) \(ordinal)")
    func bits(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(
      UniqueID(
        high: batch.value.high & 0xFFFF_FFFF_FFFF_0000 | 0x8000 | bits(digest[0..<2]) & 0xFFF,
        low: 1 << 63 | bits(digest[2..<10]) & 0x3FFF_FFFF_FFFF_FFFF))
  }
}

extension SyncOperation {
  /// Returns the same under another id, if one is given.
  func named(_ id: OperationID?) -> SyncOperation {
    guard let id else { return self }
    var named = self
    named.id = id
    return named
  }

  fileprivate func encodedBatch(_ batch: Batch) -> [UInt8] {
    var json = JSONWriter(capacity: 256)
    json.storedBatch(batch, of: self)
    return json.finish()
  }
}
