import FerryProtocol
import Synchronization

/// Parsed schemas of a store, the newest of each space. It stores only schemas read from committed
/// data under the space's lock.
final class SchemaCache: Sendable {
  /// Spaces remembered; past this number all are read again.
  private static let countMax = 1_000

  private struct Entry {
    let epoch: Epoch
    let schema: SpaceSchema
  }

  private let entries = Mutex([Int64: Entry]())

  /// Returns the schema in force in a space; `nil` without one.
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

/// An error that rolls a transaction back, with the reason.
struct SchemaRefused: Error {
  let problem: Problem
}

/// An error that rolls back the check of a schema without violations.
struct SchemaFits: Error {
  let schema: SpaceSchema
}
