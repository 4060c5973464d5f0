// A batch in the JSON of an operation (SPEC.md §14): "where" holds the predicate; "data" the
// columns to set, or "effect" is "delete". A batch names no record.

extension JSONWriter {
  /// Writes the members of an operation that is a batch.
  mutating func batchMembers(_ batch: Batch, of operation: SyncOperation) {
    key("where")
    predicate(batch.predicate)
    switch batch.effect {
    case .delete: member("effect", batch.effect.rawValue)
    case .set:
      key("data")
      columns(operation.columns)
    }
  }

  /// Writes a batch in the stored form: the members alone.
  package mutating func keptBatch(_ batch: Batch, of operation: SyncOperation) {
    object { json in
      json.member("effect", batch.effect.rawValue)
      json.key("where")
      json.predicate(batch.predicate)
      guard batch.effect == .set else { return }
      json.key("data")
      json.columns(operation.columns)
    }
  }
}

extension JSONReader {
  /// Reads the output of `keptBatch`.
  package mutating func keptBatch(
    limits: Limits
  ) throws(MalformedMessage) -> (batch: Batch, columns: [Column]) {
    var parts = BatchParts()
    var columns: [Column] = []
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "effect": parts.effect = try reader.batchEffect()
      case "where": parts.predicate = try reader.predicate(limits: limits)
      case "data": columns = try reader.columns(limits: limits)
      default: try reader.skip()
      }
    }
    guard let predicate = parts.predicate else { throw malformed("a batch without predicate") }
    return (Batch(parts.effect ?? .set, where: predicate), columns)
  }

  mutating func batchEffect() throws(MalformedMessage) -> Batch.Effect {
    let text = try string()
    guard let effect = Batch.Effect(rawValue: text) else {
      throw malformed("a batch's effect is set or delete, not '\(text.prefix(40))'")
    }
    return effect
  }
}

/// The members of a batch while the operation is read.
struct BatchParts {
  var predicate: RecordPredicate?
  var effect: Batch.Effect?

  /// Throws an error if an operation lacks a member required for the kind.
  func batch(
    of kind: OperationKind, _ id: OperationID, record: Name?, columns: [Column]?,
    hasTimes: Bool, _ reader: JSONReader
  ) throws(MalformedMessage) -> Batch? {
    guard kind == .batch else {
      guard predicate == nil, effect == nil else {
        throw reader.malformed("operation \(id): only a batch has a predicate or an effect")
      }
      return nil
    }
    guard record == nil else {
      throw reader.malformed("operation \(id): a batch names no record")
    }
    guard let predicate else {
      throw reader.malformed("operation \(id): a batch has a predicate in \"where\"")
    }
    guard !hasTimes else {
      throw reader.malformed("operation \(id): a batch's columns have no times of their own")
    }
    let batch = Batch(effect ?? .set, where: predicate)
    let isComplete = batch.effect == .set ? columns?.isEmpty == false : columns == nil
    guard isComplete else {
      throw reader.malformed("operation \(id): a batch sets columns of \"data\", or deletes")
    }
    return batch
  }
}
