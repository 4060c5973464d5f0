import FerryPlatform
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Rows with parents deleted by other devices (SPEC.md §28).
extension ReplicaFile {
  /// Returns the rules of the foreign keys of all tables.
  func knownParentRules() throws -> ParentRules {
    if let parentRules { return parentRules }
    let tables = try tracked.names().compactMap { name in try? schema(of: name) }
    let links = try tables.flatMap { table in try numberedLinks(of: table).map(\.link) }
    let known = Set(tables.map(\.local.folded))
    let others = try connection.rows(
      """
      SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name)
      WHERE t.type = 'table' ORDER BY t.name
      """
    ) { $0.name(0) }.filter { !known.contains($0.folded) }
    let rules = ParentRules(
      links,
      others: try others.flatMap { name in
        try numberedLinks(of: TableSchema(name: name, keys: [], columns: [])).map(\.link)
      })
    parentRules = rules
    return rules
  }

  /// Returns true if a trigger of the user's may write to other rows when a row of a table is
  /// deleted.
  func hasDeleteTrigger(_ table: TableSchema) throws -> Bool {
    func isIn(_ schema: String) throws -> Bool {
      try connection.exists(
        """
        SELECT 1 FROM \(schema) WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE
          AND lower(substr(name, 1, 6)) <> 'ferry_' AND instr(lower(sql), 'delete') LIMIT 1
        """, table.local)
    }
    // As in `needsGuards`.
    let databases = try connection.rows("PRAGMA database_list") { $0.text(1) }
    return try isIn("sqlite_schema")
      || (databases.contains(where: { $0 == "temp" }) && isIn("sqlite_temp_schema"))
  }

  /// Returns the local records a row refers to.
  ///
  /// - Parameter links: foreign keys of the row's table.
  func parents(of record: Name, by links: [ParentLink]) throws -> [RecordKey] {
    try links.flatMap { link -> [RecordKey] in
      guard let name = try trackedTable(local: link.parent), let parent = try? schema(of: name)
      else { return [] }
      let match = zip(link.from, link.to).map { "p.\(quoted($1)) = c.\(quoted($0))" }
      do {
        return try connection.rows(
          "SELECT \(parent.record(of: "p")) FROM \(quoted(link.child.local)) AS c, "
            + "\(quoted(parent.local)) AS p WHERE \(link.child.has(record: "?1", in: "c")) "
            + "AND \(match.joined(separator: " AND "))", record
        ) { $0.optionalName(0) }.compactMap { $0.map { RecordKey(table: name, record: $0) } }
      } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
        // The foreign key names a missing column: no row refers by it.
        return []
      }
    }
  }

  /// Returns the foreign keys of a table.
  func parentLinks(of table: TableSchema) throws -> [ParentLink] {
    try numberedLinks(of: table).map(\.link)
  }

  /// Returns one foreign key of a table, by the number in the schema.
  func parentLink(of table: TableSchema, id: Int64) throws -> ParentLink? {
    try numberedLinks(of: table).first { $0.id == id }?.link
  }

  /// Returns the foreign keys of a table, each with the rule declared by the schema.
  private func numberedLinks(of table: TableSchema) throws -> [(id: Int64, link: ParentLink)] {
    let clashes = try rules(for: table).clashes
    var links: [(id: Int64, link: ParentLink)] = []
    try connection.forEach(
      """
      SELECT id, "table", "from", coalesce("to", (SELECT name FROM pragma_table_info("table")
        WHERE pk = seq + 1)), on_delete FROM pragma_foreign_key_list(?) ORDER BY id, seq
      """, table.local
    ) { row in
      // A reference to no column matches no row.
      guard !row.isNull(3) else { return }
      if let last = links.indices.last, links[last].id == row.int64(0) {
        links[last].link.from.append(row.name(2))
        links[last].link.to.append(row.name(3))
        return
      }
      let link = ParentLink(
        child: table, parent: row.name(1),
        from: [row.name(2)], to: [row.name(3)],
        action: ParentLink.Action(rawValue: row.text(4)) ?? .none)
      links.append((row.int64(0), link))
    }
    return links.map { id, link in
      var link = link
      let columns = link.from.map { local in
        table.columns.first { $0.local.folded == local.folded }?.name ?? local
      }
      link.declared = clashes.first { $0.columns == columns }?.rule
      return (id, link)
    }
  }

  // MARK: A parent that stays

  /// Restores a record deleted by another device: the row is here still, and is recorded as an
  /// insert.
  ///
  /// - Parameters:
  ///   - deletion: the stamp of the delete.
  ///   - isAsking: true to ask the user about it.
  func restoreParent(
    _ key: RecordKey, in table: TableSchema, _ deletion: Stamp, isAsking: Bool
  ) throws {
    let counters = try counters(of: table)
    try recording {
      try connection.run(CaptureTriggers.recordRow(table, counters: counters), key.record)
    }
    try kept.forget(key)
    try recordReturn(of: key, asking: isAsking ? deletion : nil)
    try recordOnce(counters, of: key, after: deletion)
  }

  /// Records the values of counters as increments. Several devices may restore a record: they give
  /// the increments the same identifiers, so each counts once.
  private func recordOnce(_ counters: [Name], of key: RecordKey, after deletion: Stamp) throws {
    if counters.isEmpty { return }
    try rememberClock()
    for name in counters {
      guard case .integer(let amount)? = try value(of: name, in: key), amount != 0 else { continue }
      let time = HybridTimestamp(rawValue: deletion.time.rawValue &+ 1)
      try recordIncrement(
        amount, of: name, in: key, id: RescuedCounter.identifier(of: name, in: key, at: time))
    }
    capture.endGroup()
  }

  /// Returns true if the server has rejected the record's return.
  func isReturnRejected(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_operations
      WHERE state = 3 AND record = ? AND tbl = ? AND kind = 'insert' LIMIT 1
      """, key.record, key.table)
  }

  /// Returns true if this device can restore a record: it deleted the row itself, and the operation
  /// has the values.
  ///
  /// - Parameter tombstone: the delete as on the server; `nil` if it is not known.
  func canRecall(_ key: RecordKey, tombstone: Stamp?) throws -> Bool {
    guard let own = try ownDelete(of: key), try kept.change(of: key) == nil,
      try !isReturnRejected(key)
    else { return false }
    return own.isPending || own.stamp.time == tombstone?.time
  }

  /// Restores records deleted by this device, because rows of others refer to them, and before them
  /// their parents. A record stays deleted if the table rejects it.
  ///
  /// - Parameter listed: newer values, from the pull list.
  /// - Returns: The inserted records.
  func recall(
    _ deferred: DeferredRecords, _ listed: [RecordKey: [Column]], after time: HybridTimestamp
  ) throws -> Set<RecordKey> {
    if deferred.recalled.isEmpty { return [] }
    capture.observe(time)
    let links = try foreignKeyLinks()
    var inserted = Set<RecordKey>()
    for key in deferred.recalled.sorted(by: { ($0.table, $0.record) < ($1.table, $1.record) }) {
      var order: [RecordKey] = []
      guard try addMissing(key, links, to: &order) else { continue }
      for key in order {
        let isAsked = deferred.asked.contains(key)
        if try recall(key, newer: listed[key] ?? [], isAsked: isAsked) { inserted.insert(key) }
      }
    }
    return inserted
  }

  private func recall(_ key: RecordKey, newer: [Column], isAsked: Bool) throws -> Bool {
    guard let own = try ownDelete(of: key) else { return false }
    let table = try schema(of: key.table)
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    let counters = try counters(of: table)
    let columns =
      own.columns.filter { old in !newer.contains { $0.name == old.name } } + newer
    do {
      try recordingNothing(of: key) {
        try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
      }
    } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
      return false
    }
    try recording {
      try connection.run(CaptureTriggers.recordRow(table, counters: counters), key.record)
    }
    try recordReturn(of: key, asking: isAsked ? own.stamp : nil)
    try recordOnce(counters, of: key, after: own.stamp)
    return true
  }

  private func recordingNothing(of key: RecordKey, _ body: () throws -> Void) throws {
    let before = capture.mode
    capture.mode = .applying
    capture.beginApplying(key, isDeleting: false)
    defer { capture.mode = before }
    try body()
  }

  /// Adds the missing records that a record refers to, and then the record. Returns false if one of
  /// them cannot be restored.
  private func addMissing(
    _ key: RecordKey, _ links: [ForeignKeyLink], to order: inout [RecordKey]
  ) throws -> Bool {
    if order.contains(key) { return true }
    guard let table = try? schema(of: key.table) else { return false }
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    if try plan.exists(key.record) { return true }
    guard order.count < 100, let columns = try ownDelete(of: key)?.columns else { return false }
    for link in links where link.child == key.table {
      guard let parent = link.parent(of: key.record, columns), parent != key else { continue }
      guard try addMissing(parent, links, to: &order) else { return false }
    }
    order.append(key)
    return true
  }

  /// Returns this device's newest delete of a record, with the record's values.
  private func ownDelete(
    of key: RecordKey
  ) throws -> (columns: [Column], stamp: Stamp, isPending: Bool)? {
    let found = try connection.first(
      """
      SELECT id, data, state = 0 FROM ferry_operations
      WHERE kind = 'delete' AND record = ? AND tbl = ? ORDER BY seq DESC LIMIT 1
      """, key.record, key.table
    ) { (id: $0.uniqueID(0), data: Array($0.textBytes(1)), isPending: $0.int64(2) != 0) }
    guard let found, let id = found.id, !found.data.isEmpty else { return nil }
    let columns = try decode(found.data, depth: limits.depth) {
      (reader) throws(MalformedMessage) in try reader.columns(limits: limits)
    }
    let stamp = Stamp(time: id.timestamp, device: try identity().device)
    return (columns, stamp, found.isPending)
  }

  func recording(_ body: () throws -> Void) throws {
    let before = capture.mode
    capture.mode = .recording
    defer { capture.mode = before }
    // Each parent is a separate transaction, as each row of a cascade is.
    capture.endGroup()
    try body()
    capture.endGroup()
  }

  private func recordReturn(of key: RecordKey, asking deletion: Stamp?) throws {
    try log(
      "returned",
      "\(key.table)/\(key.record) is here again: it was deleted on one device, and rows of another "
        + "refer to it")
    guard let deletion else { return }
    guard let (id, stamp) = try newestOperation() else { return }
    try store(
      Conflict(column: nil, lost: .null, loser: deletion, winner: stamp, isQuestion: true), of: id,
      on: key)
  }

  func newestOperation() throws -> (OperationID, Stamp)? {
    let id = try connection.first("SELECT id FROM ferry_operations ORDER BY seq DESC LIMIT 1") {
      $0.uniqueID(0)
    }
    guard let id = id ?? nil else { return nil }
    return (OperationID(id), Stamp(time: id.timestamp, device: try identity().device))
  }
}
