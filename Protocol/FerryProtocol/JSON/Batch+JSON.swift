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
  package mutating func storedBatch(_ batch: Batch, of operation: SyncOperation) {
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

extension Batch {
  /// Reads a batch in the stored form, with the columns that it sets.
  package static func stored(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> (batch: Batch, columns: [Column]) {
    var parts = BatchParts()
    var columns: [Column] = []
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "effect": parts.effect = try Effect(from: &reader)
      case "where": parts.predicate = try RecordPredicate(from: &reader, limits: limits)
      case "data": columns = try reader.columns(limits: limits)
      default: try reader.skip()
      }
    }
    guard let predicate = parts.predicate else {
      throw reader.malformed("a batch without predicate")
    }
    return (Batch(parts.effect ?? .set, where: predicate), columns)
  }
}

extension Batch.Effect {
  init(from reader: inout JSONReader) throws(MalformedMessage) {
    let text = try reader.string()
    guard let effect = Batch.Effect(rawValue: text) else {
      throw reader.malformed("a batch's effect is set or delete, not '\(text.prefix(40))'")
    }
    self = effect
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
