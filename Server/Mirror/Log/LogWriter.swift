import FerryPostgres
import FerryProtocol

/// Stores the logged changes of tables as captured writes of a mirror, or of the mirrors of a group;
/// all calls block.
///
/// Several transactions of the log become one transaction of the writer, and a large one does as
/// well. It stores the position in the log with them, so no change is captured twice.
struct LogWriter {
  /// Changes of one statement.
  static let batchMax = 2_000
  /// Bytes of one statement.
  static let batchBytesMax = 8 << 20

  /// The mirrors with something to do.
  enum Captured: Sendable, Equatable {
    case nothing
    case mirrors(Set<Int64>)
    /// All rows are to be compared.
    case all
  }

  private struct Pending {
    /// The places of the table's parts.
    var parts: [Int]
    var part: (xid: UInt32, time: Int64)
    /// The mirror whose step has written the row.
    var own: Int64?
    var row: LoggedRow
    var relation: PgoutputRelation
  }

  let connection: PostgresConnection
  let log: MirrorLog
  /// The mirrored tables; the plan may change between two transactions.
  private var logged = LoggedParts([])
  /// The mirrors of a group.
  private var known = LogMembers.Known()
  /// The tables of partitions, and tables that had another name for a while, by their identifiers;
  /// `nil` if there is no such table any more.
  private var others: [UInt32: [String]?] = [:]
  private var pending: [Pending] = []
  private var bytes = 0
  /// Columns of the tables as they are now, in order, and those with values in the log, by the quoted
  /// names of the tables.
  private var columns: [String: (all: [Name], logged: [Name])] = [:]
  /// Values of the space columns.
  private var values = LoggedValues()
  /// The position behind the last stored transaction.
  private var stored: PostgresLSN
  /// The identifier of the writer's transaction; `nil` before it.
  private var transaction: UInt64?
  /// The last transaction with changes to capture.
  private var changed: UInt32?
  /// The table of the open statement of a step.
  private var open: String?
  /// The mirrors for which the last transactions have captured anything, or that they have stopped.
  private var captured: Set<Int64> = []
  /// True if the mirrors have to compare all rows.
  private var hasGap = false

  init(_ connection: PostgresConnection, _ log: MirrorLog) {
    (self.connection, self.log, stored) = (connection, log, log.stored)
  }

  /// True if something waits for ``commit(_:)``.
  var isDirty: Bool {
    transaction != nil || !pending.isEmpty || !values.unseen.isEmpty || hasGap
  }

  /// Uses the tables of the only mirror.
  mutating func use(_ tables: [MirrorSQL]) {
    use(LoggedParts([LoggedMirror(log.number, tables, isOfGroup: false)]))
  }

  private var hasPartitions: Bool { !logged.partitioned.isEmpty }

  private mutating func use(_ parts: LoggedParts) {
    logged = parts
    (columns, others) = ([:], [:])
    values.forget()
  }

  /// Returns the table of a relation, also of a partition; `nil` if there is none.
  private mutating func table(of relation: PgoutputRelation) throws -> [String]? {
    let name = [relation.schema, relation.name]
    if logged.places[name] != nil { return name }
    if let known = others[relation.id] { return known }
    let present = try connection.query(
      .once(
        """
        SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = coalesce(pg_partition_root($1::bigint::oid)::oid, $1::bigint::oid)
        """), [.int8(Int64(relation.id))]
    ).first.map { [try $0.text(0), try $0.text(1)] }
    let found = present.flatMap { logged.places[$0] == nil ? nil : $0 }
    others[relation.id] = found
    return found
  }

  /// Stops the mirrors because of a write to a relation with the name of no table.
  private mutating func stop(at relation: PgoutputRelation) throws {
    let followed = try connection.query(
      .once(
        """
        SELECT tab FROM ferry_mirror.recorded
        WHERE mirror = $1 AND nullif(shape, '')::json ->> 'relation' = $2::bigint::text
        """), [.int8(log.number), .int8(Int64(relation.id))]
    ).first?.text(0)
    guard let followed else {
      return try stop(
        logged.mirrors, relation.name, "a table of another name has the writes to it")
    }
    try stop(
      logged.mirrors, followed, "its name is \(relation.name) now", isAboutDefinition: true)
  }

  // MARK: Changes

  mutating func add(_ part: ReplicatedPart) throws {
    if part.isFirst { open = nil }
    // The mirrors of a group join and leave between two transactions of the writer.
    if log.isOfGroup, part.changes.contains(where: \.isOfRows) { _ = try begin() }
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
      case .store: _ = try begin()
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
        return try stop(at: relation)
      }
      let parts = logged.places[table] ?? []
      let own = open.flatMap { logged.functions[$0] }.flatMap {
        parts.contains($0.part) ? $0.mirror : nil
      }
      if own != nil, !log.isOfGroup { return }
      let isPartitioned = logged.partitioned.contains(table)
      guard let row = LoggedRow(change), relation.hasWholeRows || isPartitioned else {
        // A new partition has its own identity until the next round.
        hasGap = hasGap || isPartitioned
        if isPartitioned { return }
        return try stop(
          logged.mirrors, relation.name,
          "its REPLICA IDENTITY is not FULL, so former values are unknown")
      }
      values.look(at: row, of: table, in: logged.columns[table]?.column, relation)
      if parts.isEmpty { return }
      pending.append(Pending(parts: parts, part: part, own: own, row: row, relation: relation))
      (bytes, changed) = (bytes + change.bytes, part.xid)
      if pending.count >= Self.batchMax || bytes > Self.batchBytesMax { try flush() }
    }
  }

  private mutating func forget(
    _ function: String, _ forgotten: LogMark.Forgotten, _ keys: String, _ xid: UInt32
  ) throws {
    guard changed == xid, let found = logged.functions[function] else { return }
    try flush()
    let transaction = try begin()
    _ = try connection.query(
      .once(
        LoggedParts.forgetCaptured(forgotten, of: found.mirror, logged.parts[found.part].table)),
      [.text(Self.whole(xid, near: transaction)), .text(keys)])
  }

  /// Stops mirrors: they carry no row before both sides have been compared.
  private mutating func stop(
    _ mirrors: [Int64], _ table: String, _ reason: String, isAboutDefinition: Bool = false
  ) throws {
    _ = try begin()
    let stop = MirrorStop(table: table, reason: reason, isAboutDefinition: isAboutDefinition)
    let members = mirrors.filter { $0 > 0 }
    for mirror in members.isEmpty ? mirrors : members {
      try MirrorLedger(number: mirror).store(stop, connection)
    }
    captured.formUnion(members)
  }

  // MARK: Statements

  private mutating func begin() throws -> UInt64 {
    if let transaction { return transaction }
    try connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    let text = try connection.query(.once("SELECT pg_current_xact_id()::text")).first?.text(0)
    let number = text.flatMap { UInt64($0) } ?? 0
    transaction = number
    if log.isOfGroup, try LogMembers.refresh(&known, of: log.number, connection) {
      use(LoggedParts(Array(known.mirrors.values)))
    }
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
    // A definition may have changed since: with as many columns, nothing would fail.
    columns = [:]
    try storeValues()
    guard !pending.isEmpty else { return }
    _ = try begin()
    defer { (pending, bytes) = ([], 0) }
    let used = Set(pending.flatMap(\.parts)).sorted()
    for _ in 0..<2 {
      if try capture(used) == nil { return }
      columns = [:]
    }
    for part in used {
      guard let error = try capture([part]) else { continue }
      let found = logged.parts[part]
      // A comparison brings the rows, whatever the reason was.
      try stop(
        found.mirrors.map(\.mirror), found.table.name, error.message, isAboutDefinition: true)
    }
  }

  /// Records the values without a mirror. A table that does not fit any more stops the group.
  private mutating func storeValues() throws {
    if values.unseen.isEmpty { return }
    _ = try begin()
    for (table, values) in values.unseen.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      guard let found = logged.columns[table] else { continue }
      var error: PostgresError?
      for _ in 0..<2 {
        error = try attempt { writer in try writer.store(values, of: found) }
        if error == nil { break }
        columns = [:]
      }
      if let error { try stop([log.number], found.name, error.message) }
    }
    values.recordAll()
  }

  private mutating func store(
    _ values: Set<ArraySlice<UInt8>>, of table: LoggedTable
  ) throws {
    let column = table.column.map { Name($0) }
    let columns = try columns(of: table.target).all.map { $0 == column ? 0 : nil }
    var rows = PostgresArray<String>()
    for value in values { rows.append(utf8: LoggedRow.text([.text(value)], columns)) }
    var parameters: PostgresParameters = [.int8(-log.number)]
    parameters.append(rows)
    let new = try connection.query(.once(LoggedParts.want(table)), parameters)
    if new.isEmpty { return }
    try connection.execute(
      single: "SELECT pg_notify('\(MirrorLedger.channel)', 'group \(-log.number)')")
  }

  /// Captures the changes of some parts. Returns the reason if a table does not fit any more.
  private mutating func capture(_ used: [Int]) throws -> PostgresError? {
    guard let transaction else { return nil }
    return try attempt { writer in
      var parameters = PostgresParameters()
      for part in used { try writer.appendRows(of: part, transaction, &parameters) }
      let found = try writer.connection.query(.once(writer.logged.capture(used)), parameters)
      for row in found { writer.captured.insert(try row.int8(0)) }
    }
  }

  /// Runs a part of the transaction. Returns the error if the server refuses it; the rest goes on.
  private mutating func attempt(
    _ body: (inout LogWriter) throws -> Void
  ) throws -> PostgresError? {
    try connection.execute("SAVEPOINT ferry_logged")
    do {
      try body(&self)
      try connection.execute("RELEASE SAVEPOINT ferry_logged")
      return nil
    } catch let error as PostgresError where error.kind == .server && !error.isRetryable {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_logged; RELEASE SAVEPOINT ferry_logged")
      return error
    }
  }

  private mutating func appendRows(
    of part: Int, _ transaction: UInt64, _ parameters: inout PostgresParameters
  ) throws {
    let table = logged.parts[part].table
    let names = try columns(of: table.target)
    let needed = table.needed(of: names.logged)
    var (places, times) = (PostgresArray<Int64>(), PostgresArray<Int64>())
    var (xids, own) = (PostgresArray<String>(), PostgresArray<Int64>())
    var (old, new) = (PostgresArray<String>(), PostgresArray<String>())
    var known: (PgoutputRelation, [Int?])?
    for (place, change) in pending.enumerated() where change.parts.contains(part) {
      let columns: [Int?]
      if let known, known.0 == change.relation {
        columns = known.1
      } else {
        let logged = change.relation.columns.map { Name($0.name) }
        let found = LoggedRow.places(
          of: names.all, in: logged, needed, comparesOrder: !table.isPartitioned)
        guard let found else {
          throw PostgresError(
            .server, "columns had other names at the time of a write", sqlState: "42703")
        }
        columns = found
        known = (change.relation, columns)
      }
      places.append(Int64(place))
      times.append(change.part.time)
      xids.append(Self.whole(change.part.xid, near: transaction))
      if let mirror = change.own { own.append(mirror) } else { own.appendNull() }
      append(change.row.old, columns, to: &old)
      append(change.row.new, columns, to: &new)
    }
    parameters.append(places)
    parameters.append(xids)
    parameters.append(times)
    parameters.append(own)
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

  private mutating func columns(of target: String) throws -> (all: [Name], logged: [Name]) {
    if let known = columns[target] { return known }
    let rows = try connection.query(
      .once(
        """
        SELECT attname::text, attgenerated = '' FROM pg_catalog.pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
        """), [.text(target)]
    ).map { (Name(try $0.text(0)), try $0.bool(1)) }
    let found = (rows.map(\.0), rows.filter(\.1).map(\.0))
    columns[target] = found
    return found
  }

  // MARK: The end

  /// Stores the position behind the last transaction, and commits. Returns the mirrors with
  /// something to do.
  ///
  /// - Throws: ``MirrorFault`` if another reader, or a new slot, has moved the position meanwhile.
  mutating func commit(_ end: PostgresLSN) throws -> Captured {
    try flush()
    _ = try begin()
    let moved = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.logs SET lsn = $2::text::pg_lsn,
          gaps = gaps + CASE WHEN $3 THEN 1 ELSE 0 END
        WHERE mirror = $1 AND lsn = $4::text::pg_lsn RETURNING mirror
        """),
      [.int8(log.number), .text(end.description), .bool(hasGap), .text(stored.description)])
    guard !moved.isEmpty else {
      throw MirrorFault(description: "another process has read the log meanwhile")
    }
    try connection.execute("COMMIT")
    stored = end
    // A partition may be another table's by the next transaction, and a table have another name.
    defer { (transaction, captured, hasGap, others) = (nil, [], false, [:]) }
    if hasGap { return .all }
    return captured.isEmpty ? .nothing : .mirrors(captured)
  }
}
