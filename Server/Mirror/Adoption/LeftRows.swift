import FerryPostgres
import FerryProtocol
import FerrySQLite
import Foundation

/// A row of a table at the removal of the mirror, if the mirror's file has it in another form: a
/// change of the space was on its way to the table.
struct LeftRow: Sendable, Equatable {
  var table: String
  var key: [String?]
  /// The values of the columns as programs and steps had last agreed on them: without captured
  /// writes missing in the space. `nil` if the table had no such row.
  var values: [String: String?]?
}

/// A captured write as far as it shows the row before it.
struct LeftWrite: Sendable, Equatable {
  var kind: CapturedWrite.Kind
  /// True if the row has got another key.
  var isFormerKey = false
  var names: [String] = []
  var former: [String?] = []
}

extension LeftRow {
  /// Returns a row as it was before captured writes to it, in their order. Returns `nil` if a write
  /// has deleted it: the mirror's file has it as it was.
  func before(_ writes: [LeftWrite]) -> LeftRow? {
    var row = self
    var known: Set<String> = []
    for write in writes {
      if write.isFormerKey { return nil }
      switch write.kind {
      case .delete: return nil
      case .insert, .slice, .unfit, .rekey:
        row.values = nil
        return row
      // The table's row has not changed.
      case .answer: continue
      case .update:
        for (name, value) in zip(write.names, write.former) where known.insert(name).inserted {
          row.values?[name] = .some(value)
        }
      }
    }
    return row
  }
}

/// The captured writes contained in a mirror's file.
private struct ReadMarks {
  /// The last one of each transaction.
  private var marks: [String: (tries: Int64, id: Int64)] = [:]
  /// Delayed ones before them.
  private let later: Set<Int64>

  init(_ file: SQLiteConnection) throws {
    let rows = try file.rows("SELECT xid, tries, id FROM \"mirror.read\"") {
      ($0.text(0), ($0.int64(1), $0.int64(2)))
    }
    for (transaction, mark) in rows { marks[transaction] = mark }
    later = Set(try file.rows("SELECT id FROM \"mirror.later\"") { $0.int64(0) })
  }

  func contains(_ id: Int64, tries: Int64, of transaction: String) -> Bool {
    guard let mark = marks[transaction] else { return false }
    return (tries, id) <= mark && !later.contains(id)
  }
}

/// Reads the rows of tables that differ from a mirror's file at the removal. All calls block.
struct LeftRowReader {
  private let connection: PostgresConnection
  private let ledger: MirrorLedger
  private let sql: [MirrorSQL]
  /// Reads PostgreSQL's log; `nil` if triggers capture.
  private let reader: LogReader?

  init(
    _ configuration: MirrorConfiguration, _ plan: MirrorPlan, _ ledger: MirrorLedger,
    _ reader: LogReader?, _ connection: PostgresConnection
  ) throws {
    (self.connection, self.ledger, self.reader) = (connection, ledger, reader)
    let isAdopting = try ledger.isAdopting(connection)
    sql = plan.tables.map {
      MirrorSQL(
        table: $0, schema: configuration.schema, mirror: ledger.number, isAdopting: isAdopting,
        capture: reader == nil ? .triggers : .log)
    }
  }

  /// Returns the rows changed in a mirror's file and not in the tables, and the deferred ones. If
  /// PostgreSQL's log cannot be read in time, or lacks writes, there are none: all programs' values
  /// count.
  func read(
    _ deferred: [DeferredRow], _ file: MirrorFile, _ source: SQLiteConnection
  ) throws -> [LeftRow] {
    var keys = try file.unbrought(source)
    for row in deferred { keys[row.table, default: []].insert(row.key) }
    if keys.isEmpty { return [] }
    if let reader {
      // A stopped mirror has no slot.
      let log = try MirrorLog(ledger.number, connection)
      guard let log, !log.compares, try log.slotState(connection)?.isUsable == true
      else { return [] }
      reader.use(sql)
    }
    do {
      return try rows(keys, read: try ReadMarks(source))
    } catch let error as PostgresError where error.isWait && reader != nil {
      return []
    }
  }

  /// Returns rows by key. Rows of a table with another definition are left out: all programs'
  /// values count then.
  ///
  /// - Parameter read: captured writes contained in the file.
  private func rows(_ keys: [String: Set<[String?]>], read: ReadMarks) throws -> [LeftRow] {
    var found: [LeftRow] = []
    var snapshot = ""
    try connection.transaction(.snapshot) { connection in
      try connection.execute(
        """
        SET LOCAL statement_timeout = 0; SET LOCAL row_security = off;
        SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL extra_float_digits = 1
        """)
      snapshot =
        try connection.query(.once("SELECT pg_current_snapshot()::text")).first?.text(0) ?? ""
      for sql in sql { found += try rows(of: sql, keys[sql.table.name.text] ?? []) }
    }
    // The log's writes before the snapshot.
    try reader?.catchUp(within: LogReader.roundLimit)
    // The reader may have met another log.
    if reader != nil, try MirrorLog(ledger.number, connection)?.compares != false { return [] }
    let writes = try writes(to: found, in: snapshot, read)
    return found.compactMap { $0.before(writes[[$0.table] + $0.key] ?? []) }
  }

  private func rows(of sql: MirrorSQL, _ keys: Set<[String?]>) throws -> [LeftRow] {
    let table = sql.table
    var left = keys.sorted { $0.description < $1.description }[...]
    var found: [LeftRow] = []
    try connection.execute("SAVEPOINT ferry_left")
    do {
      while !left.isEmpty {
        let part = Array(left.prefix(MirrorStep.batchMax))
        left = left.dropFirst(part.count)
        let rows = try connection.query(.once(sql.present), PostgresParameters(columnsOf: part))
        var present: [[String?]: [String?]] = [:]
        for row in rows {
          present[try row.array(0, of: String.self)] = try row.array(1, of: String.self)
        }
        found += part.map { key in
          let values = present[key].map { values in
            Dictionary(zip(table.columns.map(\.name.text), values)) { $1 }
          }
          return LeftRow(table: table.name.text, key: key, values: values)
        }
      }
      try connection.execute("RELEASE SAVEPOINT ferry_left")
      return found
    } catch {
      guard error.kind == .server, !error.isRetryable else { throw error }
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_left; RELEASE SAVEPOINT ferry_left")
      return []
    }
  }

  /// Returns the captured writes to some rows before a snapshot, without those of the file.
  private func writes(
    to rows: [LeftRow], in snapshot: String, _ read: ReadMarks
  ) throws -> [[String?]: [LeftWrite]] {
    if rows.isEmpty { return [:] }
    let keys = RowKeys(rows.map { ($0.table, $0.key) })
    let found = try connection.query(
      .once(Self.captured),
      [.int8(ledger.number), .array(keys.tables), .array(keys.texts), .text(snapshot)])
    var writes: [[String?]: [LeftWrite]] = [:]
    for row in found {
      let (id, tries) = (try row.int8(0), try row.int8(1))
      if read.contains(id, tries: tries, of: try row.text(2)) { continue }
      guard let kind = CapturedWrite.Kind(rawValue: try row.text(5)) else { continue }
      var write = LeftWrite(kind: kind, isFormerKey: try row.bool(6))
      if kind == .update {
        write.names = try row.array(7, of: String.self).compactMap(\.self)
        write.former = try row.array(8, of: String.self)
      }
      writes[[try row.text(3)] + (try row.array(4, of: String.self)), default: []].append(write)
    }
    return writes
  }

  private static let captured = """
    WITH r AS MATERIALIZED (
      SELECT tab, key::text[] AS key FROM unnest($2::text[], $3::text[]) r(tab, key)),
    c AS MATERIALIZED (
      SELECT * FROM ferry_mirror.captured
      WHERE mirror = $1 AND pg_visible_in_snapshot(xid, $4::text::pg_snapshot))
    SELECT c.id, c.tries, c.xid::text, r.tab, r.key, c.kind::text, false AS former, c.names, c.olds
    FROM c JOIN r ON r.tab = c.tab AND r.key = c.key
    UNION ALL
    SELECT c.id, c.tries, c.xid::text, r.tab, r.key, c.kind::text, true, c.names, c.olds
    FROM c JOIN r ON r.tab = c.tab AND r.key = c.olds WHERE c.kind = 'K' AND c.olds <> c.key
    ORDER BY id
    """
}

extension MirrorSQL {
  /// Returns the present rows by key, the parameters.
  fileprivate var present: String {
    """
    SELECT \(keyParameters), \(columnTexts("t.")) FROM \(source(keysOnly: true))
    JOIN \(travelling) t ON \(matches)
    """
  }
}

/// The rows in the mirror's file.
extension MirrorFile {
  /// Returns the keys of changed rows that the tables do not have yet, by table.
  ///
  /// - Parameter ofDevices: whether rows changed by devices count.
  func unbrought(
    _ file: SQLiteConnection, ofDevices: Bool = true
  ) throws -> [String: Set<[String?]>] {
    var keys: [String: Set<[String?]>] = [:]
    try changes(before: .max, file) { row in
      guard ofDevices || row.device == nil else { return }
      let table = plan.tables[row.table]
      guard let key = try? table.texts(ofKey: row.key) else { return }
      keys[table.name.text, default: []].insert(key)
    }
    return keys
  }

  /// Stores rows of a removal, for a later comparison.
  ///
  /// - Parameter former: tables not compared since an earlier removal: their rows of then stay.
  func store(_ rows: [LeftRow], except former: Set<String>, _ file: SQLiteConnection) throws {
    try file.execute(
      """
      CREATE TABLE IF NOT EXISTS "mirror.left"(
        tab TEXT NOT NULL, key TEXT NOT NULL, vals TEXT, PRIMARY KEY(tab, key))
      """)
    for table in plan.tables where !former.contains(table.name.text) {
      try file.run("DELETE FROM \"mirror.left\" WHERE tab = ?", table.name.text)
    }
    let coder = JSONEncoder()
    for row in rows where !former.contains(row.table) {
      let values = try row.values.map { String(decoding: try coder.encode($0), as: UTF8.self) }
      try file.run(
        "INSERT OR REPLACE INTO \"mirror.left\" VALUES (?, ?, ?)", row.table,
        String(decoding: try coder.encode(row.key), as: UTF8.self), values)
    }
  }

  /// Returns the rows of a table at the removal, by key.
  private func left(
    _ table: MirrorTable, _ file: SQLiteConnection
  ) throws -> [[String?]: LeftRow] {
    let isThere = try file.exists("SELECT 1 FROM sqlite_master WHERE name = 'mirror.left'")
    guard isThere else { return [:] }
    var found: [[String?]: LeftRow] = [:]
    let (name, coder) = (table.name.text, JSONDecoder())
    let rows = try file.rows(
      "SELECT key, vals FROM \"mirror.left\" WHERE tab = ?", name
    ) { ($0.text(0), $0.optionalText(1)) }
    for (text, values) in rows {
      let key = try coder.decode([String?].self, from: Data(text.utf8))
      found[key] = LeftRow(
        table: name, key: key,
        values: try values.map {
          try coder.decode([String: String?].self, from: Data($0.utf8))
        })
    }
    return found
  }

  /// Passes each row of a table as the table had it at the removal, apart from changes of programs
  /// missing in the space.
  func formerRows(
    of place: Int, _ file: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    let table = plan.tables[place]
    var left = try left(table, file)
    if left.isEmpty { return try rows(of: place, file, body) }
    try rows(of: place, file) { row in
      guard let key = try? table.texts(ofKey: row.key), let former = left.removeValue(forKey: key)
      else { return try body(row) }
      if let row = Self.row(former, table, row) { try body(row) }
    }
    for (key, former) in left {
      guard let key = try? table.values(ofKey: key) else { continue }
      let row = MirrorRow(table: place, key: key, values: table.columns.map(\.defaultValue))
      if let row = Self.row(former, table, row) { try body(row) }
    }
  }

  /// Returns a row of a removal; a column without a value then has the present one.
  private static func row(
    _ former: LeftRow, _ table: MirrorTable, _ present: MirrorRow
  ) -> MirrorRow? {
    guard let values = former.values else { return nil }
    var row = present
    row.values = zip(table.columns, present.values ?? []).map { column, present in
      guard let text = values[column.name.text] else { return present }
      return (try? column.value(of: text)) ?? present
    }
    return row
  }
}
