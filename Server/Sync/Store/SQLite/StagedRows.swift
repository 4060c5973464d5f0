import FerryProtocol
import FerrySQLite

/// The rows of a large packet, written behind the head of the space in slices: see
/// ``StagingState``.
final class StagedRows: IngestSlices {
  /// An error: the space has changed since the packet was decided about.
  struct Lost: Error {}

  private let file: SQLiteStoreFile
  private let space: Int64
  /// The space before the packet.
  private let before: SpaceState
  /// True if some rows are written.
  private(set) var hasRows = false
  /// True if a record may have a row among them.
  private var hasRecords = false

  init(_ file: SQLiteStoreFile, _ space: Int64, before: SpaceState) {
    (self.file, self.space, self.before) = (file, space, before)
  }

  // MARK: Reading

  /// Runs `body` in a snapshot with the space as it was before the packet.
  func read<T>(_ body: () throws -> T) throws -> T {
    try file.connection.transaction(.deferred) {
      try check()
      return try body()
    }
  }

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    try read {
      let present = try file.connection.statement(
        "SELECT state FROM record_rows WHERE space = ? AND tbl = ? AND record = ? AND +sequence <= ?"
      )
      let staged = try file.connection.statement(
        "SELECT state FROM record_rows WHERE space = ? AND tbl = ? AND record = ? AND +sequence > ?"
      )
      var found: [RecordKey: (state: RecordState, bytes: Int)] = [:]
      for key in keys {
        for statement in hasRecords ? [staged, present] : [present] where found[key] == nil {
          found[key] = try statement.first(
            space, key.table, StoredRecordName(key.record), before.head
          ) { row in
            let bytes = row.blobBytes(0)
            return (try RecordState(stored: bytes, limits: .stored), bytes.count)
          }
        }
      }
      return found
    }
  }

  // MARK: Writing

  /// Writes rows, in as many transactions as needed. Operations are in the order of the table's
  /// key, so they are written one beside the other.
  func save(_ rows: IngestEffects) throws {
    var part = SlicedRows(in: file.slice)
    for row in rows.operations.sorted(by: { $0.id < $1.id }) {
      if !part.admits(row.byteCount) { try write(&part) }
      part.add(row)
    }
    for row in rows.records {
      if !part.admits(row.state.count) { try write(&part) }
      part.add(row)
    }
    for row in rows.notices {
      if !part.admits(row.body.count) { try write(&part) }
      part.add(row)
    }
    if !part.isEmpty { try write(&part) }
  }

  /// Writes changes of unique keys, which take effect after the packet is applied.
  func save(_ claims: [IngestEffects.ClaimRow]) throws {
    for start in stride(from: 0, to: claims.count, by: file.slice.rows) {
      try write {
        let insert = try file.connection.statement(
          """
          INSERT INTO staged_claims(space, number, tbl, key_columns, value, record)
          VALUES (?, ?, ?, ?, ?, ?)
          """)
        for number in start..<min(start + file.slice.rows, claims.count) {
          try insert.run(space, number, claims[number].claim, claims[number].record)
        }
      }
    }
  }

  /// Writes columns of tables. They may remain without the packet: it has written them, and would
  /// write them again.
  func save(_ columns: [IngestEffects.ColumnRow]) throws {
    for start in stride(from: 0, to: columns.count, by: file.slice.rows) {
      try write {
        try file.saveColumns(columns[start...].prefix(file.slice.rows), in: space)
      }
    }
  }

  private func write(_ part: inout SlicedRows) throws {
    try write {
      try file.saveOperations(part.operations, in: space)
      try stage(part.records)
      try file.saveNotices(part.notices, in: space)
    }
    if !part.records.isEmpty { hasRecords = true }
    part = SlicedRows(in: file.slice)
  }

  private func write(_ slice: () throws -> Void) throws {
    try file.exclusively {
      try file.connection.transaction {
        try check()
        if !hasRows {
          try file.connection.run(
            "UPDATE spaces SET staging = ? WHERE id = ?", StagingState.written.rawValue, space)
        }
        try slice()
      }
    }
    hasRows = true
    try file.checkpoint()
  }

  private func stage(_ records: [IngestEffects.RecordRow]) throws {
    let update = try file.connection.statement(
      """
      UPDATE record_rows SET sequence = ?4, whole_below = ?5, state = ?6, dead = ?7
      WHERE space = ?1 AND tbl = ?2 AND record = ?3 AND +sequence > ?8
      """)
    let insert = try file.recordInsertion()
    for row in records.map({ $0.behind(before.head) }) {
      if hasRecords, try update.run(space, row, before.head) > 0 { continue }
      try insert.run(space, row)
    }
  }

  /// Throws if the space has changed, or has other rows behind the head than these.
  func check() throws {
    let isSame = try file.connection.first(
      "SELECT head, history_hash, staging, overlap FROM spaces WHERE id = ?", space
    ) { row in
      row.int64(0) == before.head && UInt64(bitPattern: row.int64(1)) == before.historyHash
        && row.optionalInt64(2) == staging?.rawValue && row.isNull(3)
    }
    guard isSame == true else { throw Lost() }
  }

  /// The state of the space's rows behind the head.
  var staging: StagingState? { hasRows ? .written : nil }

  /// Removes all of them.
  func remove() throws {
    if hasRows { try file.removeStagedRows(space) }
  }
}

/// Rows of one transaction.
struct SlicedRows {
  private let bounds: WriteSlice
  private(set) var operations: [IngestEffects.OperationRow] = []
  private(set) var records: [IngestEffects.RecordRow] = []
  private(set) var notices: [IngestEffects.NoticeRow] = []
  private var bytes = 0

  init(in bounds: WriteSlice) { self.bounds = bounds }

  private var count: Int { operations.count + records.count + notices.count }
  var isEmpty: Bool { count == 0 }

  /// Returns whether a row of so many bytes goes into the same transaction.
  func admits(_ more: Int) -> Bool {
    isEmpty || (count < bounds.rows && bytes + more <= bounds.bytes)
  }

  mutating func add(_ row: IngestEffects.OperationRow) {
    bytes += row.byteCount
    operations.append(row)
  }

  mutating func add(_ row: IngestEffects.RecordRow) {
    bytes += row.state.count
    records.append(row)
  }

  mutating func add(_ row: IngestEffects.NoticeRow) {
    bytes += row.body.count
    notices.append(row)
  }
}

extension WriteSlice {
  /// Returns whether all rows go into one transaction.
  func admits(_ effects: IngestEffects) -> Bool {
    let count =
      effects.operations.count + effects.records.count + effects.notices.count
      + effects.claims.count + effects.columns.count
    guard count <= rows else { return false }
    let sizes =
      effects.operations.reduce(0) { $0 + $1.byteCount }
      + effects.records.reduce(0) { $0 + $1.state.count }
      + effects.notices.reduce(0) { $0 + $1.body.count }
    return sizes <= bytes
  }
}

extension IngestEffects.RecordRow {
  /// Returns the row with a place behind the head.
  fileprivate func behind(_ head: SequenceNumber) -> Self {
    if sequence > head { return self }
    return Self(
      key: key, sequence: StagingState.aside(sequence), wholeBelow: wholeBelow, isDead: isDead,
      state: state, isNew: isNew)
  }
}

extension IngestEffects.OperationRow {
  /// The bytes of all texts.
  fileprivate var byteCount: Int {
    (data?.count ?? 0) + (former?.count ?? 0) + (times?.count ?? 0) + (outcome?.count ?? 0)
      + (marks?.count ?? 0)
  }
}
