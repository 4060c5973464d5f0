import FerryProtocol
import FerrySQLite

extension ReplicaEvidence {
  /// Reads a replica's file in one snapshot, with plain SQL.
  ///
  /// Any connection will do, also a read-only one without Ferry's functions. The read joins the
  /// caller's transaction if there is one. A kept connection is several times as fast as a new one.
  ///
  /// - Parameter withArchive: Whether ``archived`` is read as well: it may be large.
  /// - Throws: ``SQLiteError``; ``UnreadableEvidence`` for a file of something else.
  package static func read(
    _ connection: SQLiteConnection, withArchive: Bool = false
  ) throws -> ReplicaEvidence {
    func snapshot() throws -> ReplicaEvidence {
      var evidence = try readSnapshot(connection)
      if withArchive { evidence.archived = try identifiers(in: "ferry_archive", connection) }
      return evidence
    }
    if connection.isInTransaction { return try snapshot() }
    return try connection.transaction(.deferred) { try snapshot() }
  }

  // `unconfirmed` counts as the product does: operations behind the last packet that was
  // acknowledged together with all before it.
  private static let state = """
    SELECT device, applied, epoch,
      (SELECT count(*) FROM ferry_pending WHERE seq > coalesce(
        (SELECT max(to_order) FROM ferry_current_packets WHERE state = 'acknowledged'
         AND number < coalesce((SELECT min(number) FROM ferry_current_packets
                                WHERE state <> 'acknowledged'), 9223372036854775807)), 0)),
      (SELECT coalesce(sum(changes), 0) FROM ferry_staged)
        + (SELECT count(*) FROM ferry_kept WHERE reason IS NULL
           AND tbl <> '\(Workload.renamed.table)' AND \(Workload.isNotStray)
           AND \(CompanyRules.isNotAdded)),
      (SELECT count(*) FROM ferry_kept WHERE reason IS NOT NULL AND \(Workload.isNotStray)),
      anchor_head, anchor, replacing, (SELECT count(*) FROM ferry_pending),
      anchor_history_hash, (SELECT count(*) FROM ferry_refresh),
      (SELECT count(*) FROM ferry_tables WHERE since IS NOT NULL)
    FROM ferry_replica
    """

  /// Reads like ``read(_:)``, but neither rows nor pending operations. The rest is the replica's
  /// progress, which costs little.
  package static func readProgress(_ connection: SQLiteConnection) throws -> ReplicaEvidence {
    let found = try connection.first(state) { row in
      UniqueID(bytes: row.blobBytes(0)).map { device in
        var evidence = ReplicaEvidence(
          device: DeviceID(device), rows: ReplicaRows(), applied: row.int64(1),
          epoch: row.optionalText(2).flatMap { Epoch($0) }, pending: [],
          unconfirmed: Int(row.int64(3)), waiting: Int(row.int64(4)), refused: Int(row.int64(5)))
        evidence.anchor = UniqueID(bytes: row.blobBytes(7)).map {
          Cursor.Anchor(
            head: row.int64(6), operation: OperationID($0),
            historyHash: row.optionalInt64(10).map(UInt64.init(bitPattern:)))
        }
        evidence.isReplacing = row.int64(8) != 0
        evidence.isRescuing = row.int64(8) == 1
        evidence.pendingCount = Int(row.int64(9))
        evidence.refreshing = Int(row.int64(11))
        evidence.unreconciled = Int(row.int64(12))
        return evidence
      }
    }
    guard let found, var evidence = found else {
      throw UnreadableEvidence("ferry_replica contains no device")
    }
    evidence.confirmed = try confirmed(after: evidence.anchor?.head ?? 0, connection)
    if evidence.refused > 0 { evidence.blocked = try blocked(connection) }
    return evidence
  }

  /// Returns operations not confirmed by the server, in order.
  package static func unconfirmedOperations(
    _ connection: SQLiteConnection
  ) throws -> [OperationID] {
    let count = try connection.first(state) { Int($0.int64(3)) } ?? 0
    return count == 0 ? [] : try identifiers(in: "ferry_pending", connection).suffix(count)
  }

  /// Returns the records whose changes violate the local schema, each with the reason.
  package static func refusedRecords(_ connection: SQLiteConnection) throws -> [String] {
    try connection.rows(
      "SELECT tbl, record, reason FROM ferry_kept WHERE reason IS NOT NULL "
        + "AND \(Workload.isNotStray) ORDER BY tbl, record"
    ) { "\($0.name(0))/\($0.name(1)) (\($0.text(2)))" }
  }

  private static func confirmed(
    after head: SequenceNumber, _ connection: SQLiteConnection
  ) throws -> Cursor.Anchor? {
    try connection.first(
      """
      SELECT last, tail FROM ferry_current_packets
      WHERE state = 'acknowledged' AND history_hash IS NOT NULL AND last > ? ORDER BY last DESC LIMIT 1
      """, head
    ) { row in
      UniqueID(bytes: row.blobBytes(1)).map {
        Cursor.Anchor(head: row.int64(0), operation: OperationID($0))
      }
    } ?? nil
  }

  private static func readSnapshot(_ connection: SQLiteConnection) throws -> ReplicaEvidence {
    var evidence = try readProgress(connection)
    evidence.pending = try identifiers(in: "ferry_pending", connection)
    evidence.refusals =
      try connection.first("SELECT max(seq) FROM ferry_log WHERE event = 'replaced'") {
        $0.int64(0)
      } ?? 0
    evidence.losses =
      try connection.first("SELECT max(seq) FROM ferry_log WHERE event = 'lost'") { $0.int64(0) }
      ?? 0
    evidence.quarantined = try identifiers(in: "ferry_quarantine", connection)
    evidence.questions = try questions(connection)
    let shared = try SharedTable.all(connection)
    // The next sync compares the changes that a migration left unrecorded. A table without its
    // triggers has changed, and Ferry has not noticed yet.
    let tables = try connection.rows(
      """
      SELECT name, signature, since IS NOT NULL, local,
        (SELECT count(*) FROM pragma_table_info(local) WHERE pk > 0) FROM ferry_tables
      WHERE remade = 0 AND local IN (SELECT name FROM sqlite_schema WHERE type = 'table')
        AND ?1 || name IN (
          SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB ?1 || '*')
      ORDER BY name
      """, connection.namespace.name("ferry_insert_")
    ) { row in
      (
        name: row.name(0), isUnsure: row.int64(2) != 0, local: row.name(3),
        list: TableSignature.read(
          row.text(1), keys: Int(row.int64(4)), quotedTable: quoted(literal: row.text(0)))
      )
    }
    for table in tables where !Workload.isStray(table.name) {
      var names: [String] = []
      if table.isUnsure {
        names = try connection.rows(
          "SELECT name FROM ferry_columns WHERE tbl = ? AND is_new <> 0", table.name
        ) { quoted($0.name(0)) }
      }
      let list = table.list.selection(without: names)
      let share = shared.first { $0.name == table.name }
      evidence.rows.tables.append(
        try rows(
          of: table.name, in: table.local, list, where: share?.condition(ofOthers: false),
          connection))
    }
    for table in shared {
      try connection.forEach(table.selection(ofOthers: true)) { row in
        evidence.elsewhere.insert(RecordKey(table: table.name, record: row.name(0)))
      }
    }
    return evidence
  }

  /// Returns the values of ``Workload/branches`` listed as lost by a replica.
  package static func listedLosses(_ connection: SQLiteConnection) throws -> [ListedLoss] {
    let tables = Workload.branches.map { quoted(literal: $0.text) }.joined(separator: ", ")
    return try connection.rows(
      "SELECT tbl, record, col, lost, loser FROM ferry_conflicts WHERE tbl IN (\(tables))"
    ) { row in
      var lost = JSONReader(row.textBytes(3))
      return ListedLoss(
        key: RecordKey(table: row.name(0), record: row.name(1)), column: row.optionalName(2),
        value: try lost.value(limits: .standard),
        author: DeviceID(UniqueID(bytes: row.blobBytes(4)) ?? UniqueID(high: 0, low: 0)))
    }
  }

  /// Returns a replica's values listed as overruled, and the place up to which they are forgotten.
  package static func overruledEntries(
    _ connection: SQLiteConnection
  ) throws -> (entries: [OverruledEntry], after: SequenceNumber) {
    let age = Limits.confirmedAgeMax
    let after = try connection.first(
      """
      SELECT applied FROM ferry_marks
      WHERE at <= (SELECT max(at) FROM ferry_marks) - ? ORDER BY at LIMIT 1
      """, age
    ) { $0.int64(0) }
    let entries = try connection.rows("SELECT operation, tbl, record FROM ferry_overruled") { row in
      OverruledEntry(
        operation: OperationID(UniqueID(bytes: row.blobBytes(0)) ?? UniqueID(high: 0, low: 0)),
        key: RecordKey(table: row.name(1), record: row.name(2)))
    }
    return (entries, after ?? 0)
  }

  private static func questions(_ connection: SQLiteConnection) throws -> [OpenQuestion] {
    try connection.rows(
      """
      SELECT tbl, record, col, loser_time, loser FROM ferry_conflicts
      WHERE question = 1 AND resolved IS NULL AND \(Workload.isNotStray) ORDER BY seq
      """
    ) { row in
      let loser = DeviceID(UniqueID(bytes: row.blobBytes(4)) ?? UniqueID(high: 0, low: 0))
      let time = HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(3)))
      return OpenQuestion(
        key: RecordKey(table: row.name(0), record: row.name(1)), column: row.optionalName(2),
        loser: Stamp(time: time, device: loser))
    }
  }

  /// Returns the number of changes blocked by rows of other spaces.
  private static func blocked(_ connection: SQLiteConnection) throws -> Int {
    try SharedTable.all(connection).reduce(0) { sum, table in
      try sum
        + (connection.first(
          """
          SELECT count(*) FROM ferry_kept WHERE tbl = ? AND reason IS NOT NULL
            AND record IN (\(table.selection(ofOthers: true)))
          """, table.name
        ) { Int($0.int64(0)) } ?? 0)
    }
  }

  private static func identifiers(
    in table: String, _ connection: SQLiteConnection
  ) throws -> [OperationID] {
    try connection.rows("SELECT id FROM \(table) ORDER BY seq") { row in
      guard let id = UniqueID(bytes: row.blobBytes(0)) else {
        throw UnreadableEvidence("\(table) contains a row without an identifier")
      }
      return OperationID(id)
    }
  }

  private static func rows(
    of name: Name, in local: Name, _ list: String, where condition: String?,
    _ connection: SQLiteConnection
  ) throws -> TableRows {
    let choice = condition.map { " WHERE \($0)" } ?? ""
    let select = try connection.statement(
      "SELECT \(list) FROM \(quoted(local))\(choice) ORDER BY 1")
    let count = select.columnCount
    var table = TableRows(name: name, columns: (1..<count).map { Name(select.columnName($0)) })
    try select.forEach { row in
      table.begin(row.name(0))
      for index in 1..<count { table.append(row.value(index)) }
    }
    return table
  }
}

/// An error: the data is in another format than Ferry's.
package struct UnreadableEvidence: Error, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
