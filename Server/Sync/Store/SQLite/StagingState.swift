import FerryProtocol
import FerrySQLite

/// The rows of a space behind the head.
///
/// A large packet is written in slices. Its rows get the sequences after the head, so no reader
/// sees them. The last transaction moves the head over all of them. From then on an existing record
/// has two rows, until the replaced one is removed, in slices again.
///
/// The claims of a new schema's keys are written in slices, too, before it is in force.
enum StagingState: Int64, Sendable {
  /// A large packet is being written, or the claims of a schema.
  case written = 1
  /// The rows are being removed, and the claims of keys not declared by the schema in force.
  case removed = 2

  /// Returns the place of a row until it is copied over the record's present one. It is behind
  /// every head: an operation that moves nothing in the order leaves the record's sequence, which
  /// two rows cannot have.
  static func aside(_ sequence: SequenceNumber) -> SequenceNumber {
    Limits.sequenceMax + sequence
  }

  /// Returns whether a row is at such a place.
  static func isAside(_ sequence: SequenceNumber) -> Bool { sequence > Limits.sequenceMax }
}

/// An error: a large packet or a schema is being written to the space, or the last steps are
/// missing.
struct SpaceUnsettled: Error {}

extension SQLiteStoreFile {
  /// Runs a transaction with writes, in this connection's turn among the process's.
  func exclusively<T>(_ body: () throws -> T) rethrows -> T {
    if isWriting { return try body() }
    return try writing.withLock {
      isWriting = true
      defer { isWriting = false }
      leaveLog(to: writing.hasSlices)
      return try body()
    }
  }

  /// Pages of the log up to which commits leave it to a connection for slices. Pages of a slice
  /// would otherwise be copied by the next small commit of another space.
  private static let logMax = 32_768

  /// Leaves the copying of the log to a connection for slices, or copies it after commits.
  private func leaveLog(to isSlicing: Bool) {
    guard isSlicing != leavesLog, !leavesSyncing else { return }
    // If this fails, the log is copied more often or later.
    try? connection.execute(single: "PRAGMA wal_autocheckpoint=\(isSlicing ? Self.logMax : 1_000)")
    leavesLog = isSlicing
  }

  /// Returns whether no large packet is being written to a space, and none has steps left.
  ///
  /// - Parameter staging: The caller's own rows behind the head, if there are any.
  func isSettled(_ space: Int64, staging: StagingState? = nil) throws -> Bool {
    try connection.first(
      "SELECT staging IS ? AND overlap IS NULL FROM spaces WHERE id = ?", staging?.rawValue, space
    ) { $0.int64(0) != 0 } ?? true
  }

  /// Removes the rows left by large packets in all spaces after a process ended.
  func removeStagedRows() throws {
    let spaces = try connection.rows(
      "SELECT id FROM spaces WHERE staging IS NOT NULL OR overlap IS NOT NULL"
    ) { $0.int64(0) }
    for space in spaces { try removeStagedRows(space) }
  }

  /// Removes the rows behind a space's head, and the replaced ones.
  func removeStagedRows(_ space: Int64) throws {
    if try isSettled(space) { return }
    // First of all, so a process which is writing such rows does not move the head over some.
    _ = try exclusively {
      try connection.run(
        "UPDATE spaces SET staging = ? WHERE id = ? AND staging IS NOT NULL",
        StagingState.removed.rawValue, space)
    }
    try removeUndeclaredClaims(of: space)
    while try removeStaged(of: space) {}
    while try applyClaims(of: space) {}
    var after: SequenceNumber?
    repeat { after = try removeReplaced(of: space, after: after) } while after != nil
  }

  // MARK: Removing

  /// Removes a slice of the rows behind the head. Returns whether some are left.
  private func removeStaged(of space: Int64) throws -> Bool {
    try exclusively {
      try connection.transaction {
        let isStaged = try connection.exists(
          "SELECT 1 FROM spaces WHERE id = ? AND staging IS NOT NULL", space)
        guard isStaged else { return false }
        let head = try head(of: space)
        var count = try connection.run(
          """
          DELETE FROM operations WHERE space = ?1 AND id IN (
            SELECT id FROM operations WHERE space = ?1 AND sequence > ?2 LIMIT ?3)
          """, space, head, slice.rows)
        count += try connection.run(
          """
          DELETE FROM notices WHERE (space, device, sequence) IN (
            SELECT space, device, sequence FROM notices
            WHERE space = ?1 AND sequence > ?2 LIMIT ?3)
          """, space, head, slice.rows)
        count += try connection.run(
          """
          DELETE FROM staged_claims WHERE space = ?1 AND number IN (
            SELECT number FROM staged_claims WHERE space = ?1 LIMIT ?2)
          """, space, slice.rows)
        let rows = try connection.rows(
          """
          SELECT sequence, rowid, sequence, length(state) FROM record_rows
          WHERE space = ? AND sequence > ? ORDER BY sequence LIMIT ?
          """, space, head, slice.rows
        ) { RowSize($0) }
        count += try remove(rows, of: space).count
        guard count == 0 else { return true }
        try connection.run("UPDATE spaces SET staging = NULL WHERE id = ?", space)
        return false
      }
    }
  }

  /// Moves a slice of the unique keys to their new holders. Returns `true` if some are left.
  private func applyClaims(of space: Int64) throws -> Bool {
    try exclusively {
      try connection.transaction {
        var last: Int64?
        let claims = try connection.rows(
          """
          SELECT number, tbl, key_columns, value, record FROM staged_claims
          WHERE space = ? ORDER BY number LIMIT ?
          """, space, slice.rows
        ) { row in
          last = row.int64(0)
          return IngestEffects.ClaimRow(
            claim: UniqueClaim(
              table: row.name(1), columns: Array(row.textBytes(2)),
              value: Array(row.textBytes(3))),
            record: row.isNull(4) ? nil : row.name(4))
        }
        guard let last else { return false }
        try saveClaims(claims, in: space)
        try connection.run(
          "DELETE FROM staged_claims WHERE space = ? AND number <= ?", space, last)
        return true
      }
    }
  }

  /// Removes a slice of the rows replaced at the move of the head. Returns the place of the last of
  /// their replacements; `nil` if there are no others.
  private func removeReplaced(
    of space: Int64, after: SequenceNumber?
  ) throws -> SequenceNumber? {
    // Outside of the turn to write: most rows behind the place may replace none.
    let rows = try replaced(in: space, after: after)
    return try exclusively {
      try connection.transaction {
        if let last = try remove(rows, of: space).last { return last.place }
        // Their tombstones were pruned meanwhile.
        try connection.run(
          "DELETE FROM record_rows WHERE space = ? AND sequence > ?", space, Limits.sequenceMax)
        try connection.run("UPDATE spaces SET overlap = NULL WHERE id = ?", space)
        return nil
      }
    }
  }

  private func replaced(in space: Int64, after: SequenceNumber?) throws -> [RowSize] {
    let overlap = try connection.first("SELECT overlap FROM spaces WHERE id = ?", space) {
      $0.optionalInt64(0)
    }
    guard let place = overlap ?? nil else { return [] }
    return try connection.rows(
      """
      SELECT new.sequence, old.rowid, old.sequence, length(old.state)
      FROM record_rows AS new CROSS JOIN record_rows AS old
      WHERE new.space = ?1 AND new.sequence > ?2 AND old.space = new.space
        AND old.tbl = new.tbl AND old.record = new.record AND +old.sequence <= ?3
      ORDER BY new.sequence LIMIT ?4
      """, space, after ?? place, place, slice.rows
    ) { RowSize($0) }
  }

  /// Removes the first of these rows of records, as far as a slice goes. Returns them.
  private func remove(_ rows: [RowSize], of space: Int64) throws -> ArraySlice<RowSize> {
    // The number of a deleted row may be another one's now.
    let remove = try connection.statement(
      "DELETE FROM record_rows WHERE rowid = ? AND space = ? AND sequence = ?")
    var (count, bytes) = (0, 0)
    for row in rows {
      if count > 0, bytes + row.bytes > slice.bytes { break }
      if StagingState.isAside(row.place), row.place != row.sequence {
        try copy(row, in: space)
      } else {
        try remove.run(row.number, space, row.sequence)
      }
      (count, bytes) = (count + 1, bytes + row.bytes)
    }
    return rows.prefix(count)
  }

  /// Copies the row at a place over the record's present one, which retains its sequence.
  private func copy(_ row: RowSize, in space: Int64) throws {
    try connection.run(
      """
      UPDATE record_rows SET (whole_below, state, dead) = (
        SELECT whole_below, state, dead FROM record_rows WHERE space = ?1 AND sequence = ?2)
      WHERE rowid = ?3 AND space = ?1 AND sequence = ?4
      """, space, row.place, row.number, row.sequence)
    try connection.run(
      "DELETE FROM record_rows WHERE space = ? AND sequence = ?", space, row.place)
  }
}

/// A row of a record to remove, or to replace by the row at this place.
private struct RowSize {
  /// The place by which it was found.
  let place: SequenceNumber
  let number: Int64
  let sequence: SequenceNumber
  let bytes: Int

  init(_ row: SQLiteStatement) {
    (place, number) = (row.int64(0), row.int64(1))
    (sequence, bytes) = (row.int64(2), Int(row.int64(3)))
  }
}
