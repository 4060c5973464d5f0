import FerryPostgres
import FerryProtocol

/// Stores the logged changes of a mirror's tables as captured writes; all calls block.
///
/// Several transactions of the log become one transaction of the writer, and a large one does as
/// well. It stores the position in the log with them, so no change is captured twice.
struct LogWriter {
  /// Changes of one statement.
  static let batchMax = 2_000
  /// Bytes of one statement.
  static let batchBytesMax = 8 << 20

  private struct Pending {
    var table: Int
    var part: (xid: UInt32, time: Int64)
    var row: LoggedRow
    var relation: PgoutputRelation
  }

  let connection: PostgresConnection
  let log: MirrorLog
  /// The mirrored tables; the plan may change between two transactions.
  private var tables: [MirrorSQL] = []
  /// The tables by their names in PostgreSQL.
  private var places: [[String]: Int] = [:]
  private var hasPartitions = false
  /// The tables of partitions, by their identifiers; `nil` for those of no table any more.
  private var partitions: [UInt32: Int?] = [:]
  private var pending: [Pending] = []
  private var bytes = 0
  /// Columns of the tables as they are now, in order.
  private var columns: [Int: [String]] = [:]
  /// The identifier of the writer's transaction; `nil` before it.
  private var transaction: UInt64?
  /// The last transaction with changes to capture.
  private var changed: UInt32?
  /// The table of the open statement of a step.
  private var open: String?
  /// True if the last transactions have captured anything, or stopped the mirror.
  private(set) var hasCaptured = false
  /// True if the mirror has to compare all rows.
  private var hasGap = false

  init(_ connection: PostgresConnection, _ log: MirrorLog) {
    (self.connection, self.log) = (connection, log)
  }

  /// True if something waits for ``commit(_:)``.
  var isDirty: Bool { transaction != nil || !pending.isEmpty || hasGap }

  mutating func use(_ tables: [MirrorSQL]) {
    self.tables = tables
    places = [:]
    for (place, sql) in tables.enumerated() { places[[sql.schema, sql.table.name.text]] = place }
    (columns, partitions) = ([:], [:])
    hasPartitions = tables.contains(where: Self.isPartitioned)
  }

  private static func isPartitioned(_ sql: MirrorSQL) -> Bool {
    sql.table.adoption?.isPartitioned == true
  }

  /// Returns the table of a relation, also of a partition; `nil` if there is none.
  private mutating func table(of relation: PgoutputRelation) throws -> Int? {
    if let place = places[[relation.schema, relation.name]] { return place }
    guard hasPartitions else { return nil }
    if let known = partitions[relation.id] { return known }
    let root = try connection.query(
      .once(
        """
        SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = pg_partition_root($1::bigint::oid)
        """), [.int8(Int64(relation.id))]
    ).first.map { [try $0.text(0), try $0.text(1)] }
    let found = root.flatMap { places[$0] }
    partitions[relation.id] = found
    return found
  }

  // MARK: Changes

  mutating func add(_ part: ReplicatedPart) throws {
    if part.isFirst { open = nil }
    for change in part.changes { try add(change, (part.xid, part.time)) }
    // The rest of a large transaction does not wait in memory.
    if part.end == nil { try flush() }
  }

  private mutating func add(
    _ change: ReplicatedChange, _ part: (xid: UInt32, time: Int64)
  ) throws {
    switch change {
    case .message(let prefix, let content):
      guard prefix == LogMark.prefix, let mark = LogMark(content, secret: log.secret) else {
        return
      }
      switch mark {
      case .open(let table): open = table
      case .close: open = nil
      case .beat: break
      case .forget(let table, let forgotten, let keys):
        try forget(table, forgotten, keys, part.xid)
      }
    case .truncate(let relation):
      // The log does not name the rows.
      if try table(of: relation) != nil || hasPartitions { hasGap = true }
    case .insert(let relation, _), .update(let relation, _, _), .delete(let relation, _):
      guard let table = try table(of: relation) else {
        // It may be of a partition that is detached or gone by now.
        hasGap = hasGap || hasPartitions
        if hasPartitions { return }
        return try stop(relation.name, "a table of another name has the writes to it")
      }
      if open == tables[table].function { return }
      let isPartitioned = Self.isPartitioned(tables[table])
      guard let row = LoggedRow(change), relation.hasWholeRows || isPartitioned else {
        // A new partition has its own identity until the next round.
        hasGap = hasGap || isPartitioned
        if isPartitioned { return }
        return try stop(
          relation.name, "its REPLICA IDENTITY is not FULL, so former values are unknown")
      }
      pending.append(Pending(table: table, part: part, row: row, relation: relation))
      (bytes, changed) = (bytes + change.bytes, part.xid)
      if pending.count >= Self.batchMax || bytes > Self.batchBytesMax { try flush() }
    }
  }

  private mutating func forget(
    _ function: String, _ forgotten: LogMark.Forgotten, _ keys: String, _ xid: UInt32
  ) throws {
    guard changed == xid, let sql = tables.first(where: { $0.function == function }) else { return }
    try flush()
    let transaction = try begin()
    _ = try connection.query(
      .once(LoggedRowsSQL(sql: sql).forgetCaptured(forgotten)),
      [.text(Self.whole(xid, near: transaction)), .text(keys)])
  }

  /// Stops the mirror: it carries no row before both sides have been compared.
  private mutating func stop(_ table: String, _ reason: String) throws {
    _ = try begin()
    try MirrorLedger(number: log.number).store(
      MirrorStop(table: table, reason: reason), connection)
    hasCaptured = true
  }

  // MARK: Statements

  private mutating func begin() throws -> UInt64 {
    if let transaction { return transaction }
    try connection.execute("BEGIN")
    let text = try connection.query(.once("SELECT pg_current_xact_id()::text")).first?.text(0)
    let number = text.flatMap { UInt64($0) } ?? 0
    transaction = number
    return number
  }

  /// Returns the whole identifier of a transaction: the log has the lower half. PostgreSQL runs two
  /// transactions beside each other only if 2³¹ or fewer lie between them.
  ///
  /// - Parameter other: a transaction of the same time, older or younger.
  static func whole(_ xid: UInt32, near other: UInt64) -> String {
    let distance = Int32(bitPattern: xid &- UInt32(truncatingIfNeeded: other))
    return String(other &+ UInt64(bitPattern: Int64(distance)))
  }

  private mutating func flush() throws {
    guard !pending.isEmpty else { return }
    _ = try begin()
    hasCaptured = true
    defer { (pending, bytes) = ([], 0) }
    // A definition may have changed since: with as many columns, nothing would fail.
    columns = [:]
    for _ in 0..<2 {
      if try capture(pending) == nil { return }
      columns = [:]
    }
    for table in Set(pending.map(\.table)).sorted() {
      guard let error = try capture(pending.filter { $0.table == table }) else { continue }
      try stop(tables[table].table.name.text, error.message)
    }
  }

  /// Captures changes. Returns the reason if a table does not fit any more.
  private mutating func capture(_ changes: [Pending]) throws -> PostgresError? {
    guard let transaction else { return nil }
    try connection.execute("SAVEPOINT ferry_logged")
    do {
      let used = Set(changes.map(\.table)).sorted()
      var parameters = PostgresParameters()
      for table in used {
        try appendRows(of: table, changes, transaction, &parameters)
      }
      _ = try connection.query(
        .once(LoggedRowsSQL.capture(used.map { tables[$0] })), parameters)
      try connection.execute("RELEASE SAVEPOINT ferry_logged")
      return nil
    } catch let error as PostgresError where error.kind == .server && !error.isRetryable {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_logged; RELEASE SAVEPOINT ferry_logged")
      return error
    }
  }

  private mutating func appendRows(
    of table: Int, _ changes: [Pending], _ transaction: UInt64,
    _ parameters: inout PostgresParameters
  ) throws {
    let names = try columns(of: table)
    var (places, times) = (PostgresArray<Int64>(), PostgresArray<Int64>())
    var xids = PostgresArray<String>()
    var (old, new) = (PostgresArray<String>(), PostgresArray<String>())
    var known: (PgoutputRelation, [Int?])?
    for (place, change) in changes.enumerated() where change.table == table {
      let columns: [Int?]
      if let known, known.0 == change.relation {
        columns = known.1
      } else {
        let logged = change.relation.columns.map(\.name)
        columns = names.map { logged.firstIndex(of: $0) }
        known = (change.relation, columns)
      }
      places.append(Int64(place))
      times.append(change.part.time)
      xids.append(Self.whole(change.part.xid, near: transaction))
      append(change.row.old, columns, to: &old)
      append(change.row.new, columns, to: &new)
    }
    parameters.append(places)
    parameters.append(xids)
    parameters.append(times)
    parameters.append(old)
    parameters.append(new)
  }

  private func append(
    _ values: [PgoutputValue]?, _ columns: [Int?], to array: inout PostgresArray<String>
  ) {
    if let values {
      array.append(utf8: LoggedRow.text(values, columns))
    } else {
      array.appendNull()
    }
  }

  private mutating func columns(of table: Int) throws -> [String] {
    if let known = columns[table] { return known }
    let found = try connection.query(
      .once(
        """
        SELECT attname::text FROM pg_catalog.pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
        """), [.text(tables[table].target)]
    ).map { try $0.text(0) }
    columns[table] = found
    return found
  }

  // MARK: The end

  /// Stores the position behind the last transaction, and commits. Returns `true` if the mirror has
  /// something to do.
  mutating func commit(_ end: PostgresLSN) throws -> Bool {
    try flush()
    _ = try begin()
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.logs SET lsn = $2::text::pg_lsn,
          gaps = gaps + CASE WHEN $3 THEN 1 ELSE 0 END
        WHERE mirror = $1
        """), [.int8(log.number), .text(end.description), .bool(hasGap)])
    try connection.execute("COMMIT")
    // A partition may be another table's by the next transaction.
    defer { (transaction, hasCaptured, hasGap, partitions) = (nil, false, false, [:]) }
    return hasCaptured || hasGap
  }
}
