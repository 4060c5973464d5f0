import FerryPlatform
import FerryProtocol
import FerrySQLite

/// Reads the server's expected state of one tracked table: omits rows with pending operations, and
/// includes deferred changes. It reads the rows themselves, on a connection and in a transaction of
/// the caller.
struct TableScan {
  let table: TableSchema
  let comparison: RowComparison
  /// Records with pending operations, and records changed here by pending batches.
  let pending: Set<RecordKey>
  private let kept: [RecordKey: RecordState]
  /// Leaves with pending or kept records: only these need a check of each record.
  private let special: Set<Int>
  /// Columns in the order of hashing.
  private let columns: [(name: Name, read: String, framed: [UInt8])]
  private let connection: SQLiteConnection

  /// Prepares the scan of a table.
  ///
  /// - Parameter isWhole: true if all rows are scanned. If not, only ``row(_:)`` and ``comparison``
  ///   are used: pending and deferred changes are not read.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the table no longer exists.
  init(
    _ name: Name, on connection: SQLiteConnection, limits: Limits, isWhole: Bool = true
  ) throws {
    self.connection = connection
    table =
      name == MissionRecord.table
      ? .missions(in: connection.namespace)
      : try TableSchema.read(name, from: connection, SpaceNames.read(from: connection))
    let known = table
    columns = table.columns.map { Column($0.name, .null) }.sortedByBytes().map {
      ($0.name, known.column($0.name).read(), RecordHasher.framed($0.name))
    }
    comparison = RowComparison(rules: try Self.rules(of: table, on: connection))
    pending = isWhole ? try Self.pending(of: name, on: connection) : []
    kept = isWhole ? try Self.kept(of: name, on: connection, limits: limits) : [:]
    special = Set((Array(pending) + kept.keys).map { DigestNode.leaf(of: $0.record) })
  }

  /// Returns the sums of all rows; calls `progress` with the number of rows read so far.
  func sums(progress: (Int) -> Void) throws -> DigestSums {
    var sums = DigestSums()
    var hasher = RecordHasher()
    let framed = RecordHasher.framed(table.name)
    var rows = 0
    try connection.prepare(selection()).forEach { row in
      guard row.type(0) == .text else { return }
      let record = row.textBytes(0)
      let leaf = DigestNode.leaf(of: record)
      rows += 1
      if rows.isMultiple(of: 10_000) { progress(rows) }
      if !special.isEmpty && special.contains(leaf) && isSpecial(row) { return }
      hasher.begin(table: framed, record: record)
      for index in columns.indices { hasher.add(columns[index].framed, row, Int32(index) + 1) }
      sums.add(hasher.finish(), to: leaf)
    }
    for key in kept.keys where !pending.contains(key) {
      guard let received = try received(key) else { continue }
      sums.add(hasher.digest(of: key, received), to: DigestNode.leaf(of: key.record))
    }
    return sums
  }

  /// Returns the digests of the records of some leaves.
  func digests(of leaves: Set<Int>) throws -> [RecordKey: Digest] {
    var found: [RecordKey: Digest] = [:]
    var hasher = RecordHasher()
    try connection.prepare(selection()).forEach { row in
      guard row.type(0) == .text, leaves.contains(DigestNode.leaf(of: row.textBytes(0))),
        !isSpecial(row)
      else { return }
      let key = RecordKey(table: table.name, record: row.name(0))
      found[key] = hasher.digest(of: key, values(row))
    }
    for key in kept.keys where leaves.contains(DigestNode.leaf(of: key.record)) {
      guard !pending.contains(key), let received = try received(key) else { continue }
      found[key] = hasher.digest(of: key, received)
    }
    return found
  }

  /// Returns a record as this device has received it; `nil` if there is none.
  func received(_ key: RecordKey) throws -> [Column]? {
    KeptOverlay.received(row: try row(key), kept: kept[key])
  }

  /// Returns a record's row; `nil` if there is none.
  func row(_ key: RecordKey) throws -> [Column]? {
    try connection.first(selection(where: table.has(record: "?1")), key.record) { values($0) }
  }

  // MARK: Rows

  private func selection(where condition: String? = nil) -> String {
    let names = ([table.record()] + columns.map(\.read)).joined(separator: ", ")
    return "SELECT \(names) FROM \(table.rows)" + (condition.map { " WHERE \($0)" } ?? "")
  }

  private func values(_ row: SQLiteStatement) -> [Column] {
    columns.indices.map { Column(columns[$0].name, row.value(Int32($0) + 1)) }
  }

  private func isSpecial(_ row: SQLiteStatement) -> Bool {
    if special.isEmpty { return false }
    let key = RecordKey(table: table.name, record: row.name(0))
    return pending.contains(key) || kept[key] != nil
  }

  // MARK: Facts about the table

  private static func pending(
    of table: Name, on connection: SQLiteConnection
  ) throws -> Set<RecordKey> {
    let records = try connection.rows(
      """
      SELECT record FROM ferry_pending WHERE tbl = ?1 AND kind <> 'batch'
      UNION SELECT record FROM ferry_batch_rows WHERE tbl = ?1
      """, table
    ) { RecordKey(table: table, record: $0.name(0)) }
    return Set(records)
  }

  private static func kept(
    of table: Name, on connection: SQLiteConnection, limits: Limits
  ) throws -> [RecordKey: RecordState] {
    var kept: [RecordKey: RecordState] = [:]
    try connection.forEach("SELECT record, state FROM ferry_kept WHERE tbl = ?", table) { row in
      kept[RecordKey(table: table, record: row.name(0))] =
        try? RecordState(decoding: row.textBytes(1), limits: limits)
    }
    return kept
  }

  private static func rules(
    of table: TableSchema, on connection: SQLiteConnection
  ) throws -> [Name: RowComparison.ColumnRule] {
    var types: [Name: String] = [:]
    try connection.forEach("SELECT name, type FROM pragma_table_xinfo(?)", table.local) {
      types[$0.name(0)] = try connection.type($0.text(1), in: table.local.text)
    }
    var rules: [Name: RowComparison.ColumnRule] = [:]
    for column in table.columns {
      // A number of this device is read as the identifier it stands for.
      let type = column.numbers == nil ? types[column.local] ?? "" : ""
      let hasValue = column.numbers == nil || column.defaultSQL == nil
      rules[column.name] = RowComparison.ColumnRule(
        affinity: ColumnAffinity(declared: type),
        defaultValue: hasValue
          ? try ColumnDefault(sql: column.defaultSQL, on: connection) : .varying)
    }
    return rules
  }
}

extension ColumnDefault {
  /// Reads a column's default. The value of an expression is unknown: it may read the clock.
  init(sql: String?, on connection: SQLiteConnection) throws {
    guard let sql else {
      self = .null
      return
    }
    let isText =
      sql.begins(with: "'") && sql.utf8.dropFirst().firstIndex(of: 0x27) == sql.utf8.indices.last
    let mayVary = !isText && (sql.has("(") || sql.uppercasedASCII.begins(with: "CURRENT_"))
    let value = mayVary ? nil : try? connection.prepare("SELECT \(sql)").first { $0.value(0) }
    guard let value else {
      self = .varying
      return
    }
    self = value == .null ? .null : .constant(value)
  }
}

extension RecordHasher {
  /// Adds a column of a row; omits NULL.
  fileprivate mutating func add(_ name: [UInt8], _ row: SQLiteStatement, _ index: Int32) {
    switch row.type(index) {
    case .null: break
    case .integer: add(name, integer: row.int64(index))
    case .real: add(name, real: row.double(index))
    case .text: add(name, text: row.textBytes(index))
    case .blob: add(name, blob: row.blobBytes(index))
    }
  }
}
