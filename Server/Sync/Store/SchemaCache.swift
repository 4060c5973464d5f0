import FerryProtocol
import Synchronization

/// Schemas that a store has parsed, the newest of each space. It keeps only schemas that were read
/// from committed data under the space's lock.
final class SchemaCache: Sendable {
  /// Spaces remembered; past that all are read again.
  private static let countMax = 1_000

  private struct Entry {
    let epoch: Epoch
    let schema: SpaceSchema
  }

  private let entries = Mutex([Int64: Entry]())

  /// Returns the schema that is in force in a space; `nil` if it has none.
  func schema(
    of space: Int64, _ state: SpaceState, read: () throws -> SpaceSchema?
  ) throws -> SpaceSchema? {
    if state.schemaVersion == 0 { return nil }
    let known = entries.withLock { $0[space] }
    if let known, known.epoch == state.epoch, known.schema.version == state.schemaVersion {
      return known.schema
    }
    guard let schema = try read(), schema.version == state.schemaVersion else {
      throw StoreError.failed("schema \(state.schemaVersion) of a space is missing")
    }
    entries.withLock { entries in
      if entries.count >= Self.countMax { entries = [:] }
      entries[space] = Entry(epoch: state.epoch, schema: schema)
    }
    return schema
  }
}

/// An error that rolls a transaction back, with its reason.
struct SchemaRefused: Error {
  let problem: Problem
}

/// An error that rolls the check of a schema back that fits.
struct SchemaFits: Error {
  let schema: SpaceSchema
}
