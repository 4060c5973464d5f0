import FerryProtocol
import FerrySQLite

// The file has one writer for all spaces. A large packet is decided beside it, and its rows are
// written in slices. A last short transaction applies the packet, if the space is as it was.
extension SQLiteStoreFile {
  /// Attempts before the space counts as busy: other processes change it.
  private static let attemptsMax = 4

  /// Applies, answers or buffers packets durably, unless the matches of their batch operations are
  /// missing. No transaction is larger than a slice.
  func ingestInSlices(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom
  ) throws -> IngestAttempt {
    writing.beginSlices()
    defer { writing.endSlices() }
    for _ in 0..<Self.attemptsMax {
      try removeStagedRows(space)
      do {
        let done = try IngestRestart.repeated { start in
          try prepare(packets, in: space, now: now, matches, room: room, from: start).commit()
        }
        try removeStagedRows(space)
        try checkpoint()
        return .done(before: done.before, done.batch)
      } catch let wanted as BatchesToMatch {
        return .needsMatches(wanted)
      } catch is StagedRows.Lost {
        // Another process has changed the space.
      } catch is SpaceUnsettled {
        // Another process has written a large packet to it.
      }
    }
    throw StoreError.busy("the space changes faster than the server can write a large packet")
  }

  /// Decides about packets, and writes all rows but the last ones behind the head. Removes them on
  /// failure.
  func prepare(
    _ packets: [IncomingPacket], in space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom, from start: IngestRestart = IngestRestart()
  ) throws -> PreparedIngest {
    let basis = try connection.transaction(.deferred) {
      try self.context(for: packets, in: space, now: now, room)
    }
    let rows = StagedRows(self, space, before: basis.space)
    var context = basis
    let loader = loader(in: space, now: now, room)
    do {
      let effects = try Ingest.decide(packets, in: &context, from: start, slices: rows) {
        need, context in
        try rows.read { try loader.load(need, matches, for: packets.count, into: &context) }
      }
      var prepared = PreparedIngest(
        file: self, space: space, packets: packets, basis: basis, rows: rows, effects: effects)
      try prepared.stage()
      return prepared
    } catch {
      try rows.remove()
      throw error
    }
  }

  /// Opens a connection for slices: it leaves the copying of pages to ``checkpoint()``, and has
  /// memory for the pages of one slice.
  ///
  /// The commit of a slice is not synced. A loss of power then removes the end of the log, and no
  /// row of it was seen. The transaction that moves the head syncs all of the log before it.
  func prepareForSlices() throws {
    try connection.execute(
      "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-16384; PRAGMA synchronous=NORMAL")
    leavesSyncing = true
  }

  /// Runs a transaction and syncs it to the disk, with all before it.
  func synced(_ body: () throws -> Void) throws {
    guard leavesSyncing else { return try body() }
    try connection.execute("PRAGMA synchronous=FULL")
    // If this fails, later slices are synced, too.
    defer { try? connection.execute("PRAGMA synchronous=NORMAL") }
    try body()
  }

  /// Pages of the log after which it begins from its start.
  private static let logMax: Int64 = 8_192

  /// Copies the pages of the log into the file, outside of any turn to write: the next packet of
  /// another space need not do so. Pages still used by a reader remain.
  func checkpoint() throws {
    guard try copyLog() > Self.logMax else { return }
    // Copies the few pages written meanwhile by others. A log that is copied whole begins from its
    // start with the next transaction.
    _ = try exclusively { try copyLog() }
  }

  /// Returns the pages of the log.
  private func copyLog() throws -> Int64 {
    try connection.statement("PRAGMA wal_checkpoint(PASSIVE)").first { $0.int64(1) } ?? 0
  }
}

/// A decision about packets, with rows behind the head of the space.
struct PreparedIngest {
  fileprivate let file: SQLiteStoreFile
  fileprivate let space: Int64
  fileprivate let packets: [IncomingPacket]
  /// The context before the decision.
  fileprivate let basis: IngestContext
  fileprivate let rows: StagedRows
  /// The decision, with all rows not written by a slice.
  fileprivate(set) var effects: IngestEffects

  /// Writes the rows, unless all of them fit into the last transaction.
  fileprivate mutating func stage() throws {
    if !rows.hasRows, file.slice.admits(effects) { return }
    try rows.save(effects)
    if effects.claims.count > file.slice.rows {
      try rows.save(effects.claims)
      effects.claims = []
    }
    if effects.columns.count > file.slice.rows {
      try rows.save(effects.columns)
      effects.columns = []
    }
    (effects.operations, effects.records, effects.notices) = ([], [], [])
  }

  /// Applies the decision in one durable transaction.
  ///
  /// - Throws: `StagedRows.Lost` if the space has changed since. Then nothing is left of the
  ///   packets.
  func commit() throws -> (before: SequenceNumber, batch: IngestBatch) {
    do {
      try file.exclusively {
        try file.synced {
          try file.change(space) {
            let later = try file.frame(
              of: packets, in: space, now: basis.now, basis.room, staging: rows.staging)
            guard basis.isBasis(in: later) else { throw StagedRows.Lost() }
            try write()
          }
        }
      }
    } catch {
      try rows.remove()
      throw error is SpaceUnsettled ? StagedRows.Lost() : error
    }
    return (basis.space.head, effects.batch)
  }

  private func write() throws {
    guard rows.hasRows else { return try file.save(effects, in: space, now: basis.now) }
    try file.saveFrame(of: effects, in: space, now: basis.now)
    // Replaced rows are removed in slices.
    try file.connection.run(
      "UPDATE spaces SET staging = NULL, overlap = ? WHERE id = ?", basis.space.head, space)
  }
}
