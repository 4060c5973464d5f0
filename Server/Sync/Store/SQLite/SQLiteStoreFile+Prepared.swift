import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A decision about packets with batch operations, made beside the writer.
struct PreparedIngest: Sendable {
  /// The context before the decision.
  let basis: IngestContext
  /// All rows to write.
  let effects: IngestEffects
}

// The file has one writer for all spaces. A batch of many records is matched, merged and encoded on a
// reader. The writer then only writes the rows, in one transaction, if the space is as it was.
extension SQLiteStoreFile {
  /// Decides about packets in one snapshot, and writes nothing. Returns `nil` if their matches are
  /// not known, or if the rows need too much memory.
  func prepare(
    _ packets: [IncomingPacket], in space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom
  ) throws -> PreparedIngest? {
    do {
      return try IngestRestart.repeated { start in
        try connection.transaction(.deferred) {
          var context = try context(for: packets, in: space, now: now, room)
          let basis = context
          let rows = CollectedRows(SQLiteSlices(file: self, space: space))
          let effects = try decide(packets, in: &context, of: space, matches, from: start, rows)
          return PreparedIngest(basis: basis, effects: try rows.complete(effects))
        }
      }
    } catch is BatchesToMatch {
      return nil
    } catch is CollectedRows.Overflow {
      return nil
    }
  }

  /// Writes a decision in one durable transaction. Returns `nil`, and writes nothing, if the space
  /// has changed since.
  func commit(
    _ prepared: PreparedIngest, of packets: [IncomingPacket], to space: Int64
  ) throws -> IngestAttempt? {
    let before = prepared.basis.space.head
    return try change(space) {
      let basis = prepared.basis
      let context = try context(for: packets, in: space, now: basis.now, basis.room)
      guard basis.isBasis(in: context) else { return nil }
      try save(prepared.effects, in: space, now: basis.now)
      return .done(before: before, prepared.effects.batch)
    }
  }
}

/// The slices of a batch in memory, for a transaction that writes all of them together.
final class CollectedRows: IngestSlices {
  /// An error: the rows need more memory than one batch may take.
  struct Overflow: Error {}

  /// Bytes of the rows of one batch, at most: ``Limits/batchRecords`` short records need half.
  static let bytesMax = 128 << 20
  /// Bytes of a row besides its texts.
  static let rowBytes = 256

  private let stored: any IngestSlices
  private var operations: [IngestEffects.OperationRow] = []
  private var records: [IngestEffects.RecordRow] = []
  private var places: [RecordKey: Int] = [:]
  private var notices: [IngestEffects.NoticeRow] = []
  private var bytes = 0

  /// - Parameter stored: Loads states that no slice has changed.
  init(_ stored: any IngestSlices) { self.stored = stored }

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    var found = try stored.load(keys.filter { places[$0] == nil })
    for key in keys {
      guard let place = places[key] else { continue }
      let bytes = records[place].state
      let state = try bytes.withUnsafeBytes { try RecordState(stored: $0, limits: .stored) }
      found[key] = (state, bytes.count)
    }
    return found
  }

  func save(_ slice: IngestEffects) throws {
    operations += slice.operations
    notices += slice.notices
    for row in slice.operations { bytes += Self.rowBytes + row.byteCount }
    for row in slice.notices { bytes += Self.rowBytes + row.body.count }
    for row in slice.records {
      bytes += Self.rowBytes + row.state.count
      if let place = places[row.key] {
        bytes -= Self.rowBytes + records[place].state.count
        records[place] = row
      } else {
        places[row.key] = records.count
        records.append(row)
      }
    }
    guard bytes <= Self.bytesMax else { throw Overflow() }
  }

  /// Returns effects with the rows of all slices. Operations are in the order of the table's key, so
  /// that they are written one beside the other.
  func complete(_ last: IngestEffects) throws -> IngestEffects {
    try save(last)
    var effects = last
    effects.operations = operations.sorted { $0.id < $1.id }
    (effects.records, effects.notices) = (records, notices)
    return effects
  }
}

extension IngestEffects.OperationRow {
  fileprivate var byteCount: Int {
    (data?.count ?? 0) + (former?.count ?? 0) + (times?.count ?? 0) + (outcome?.count ?? 0)
      + (marks?.count ?? 0)
  }
}
