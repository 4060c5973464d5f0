import FerryProtocol
import FerrySQLite

/// A pulled change that waits: a row of `ferry_kept`.
struct KeptChange {
  let change: Change
  /// True if this version can read the change; an unreadable one has an empty state.
  var isReadable = true
  /// The kind of event it waits for; `nil` for a kind of another version.
  var waits: Deferral.Kind?
  /// The reason for the rejection by the local schema; `nil` if nothing has rejected the change.
  var reason: String?

  /// True if the local schema rejected the change.
  var isRefused: Bool { waits != .schema }

  /// The state of the record; `nil` if this version cannot read it.
  var state: RecordState? { isReadable ? change.state : nil }
}

/// A choice among the kept changes.
enum KeptChoice {
  case all
  /// Changes rejected by the local schema.
  case refused
  /// Rejected changes to retry now.
  case open
  case ofTable(Name)
  /// Changes of a table or column unknown here.
  case unknown(in: Name)
}

/// A kept change's place in the order of sequences.
struct KeptPlace {
  let sequence: SequenceNumber
  let key: RecordKey

  /// The place before all changes.
  static let start = KeptPlace(sequence: -1, key: RecordKey(table: "", record: ""))

  init(sequence: SequenceNumber, key: RecordKey) {
    (self.sequence, self.key) = (sequence, key)
  }

  init(_ change: Change) { self.init(sequence: change.sequence, key: change.key) }
}

/// Changes unknown to the local schema or rejected by it, also held ones: `ferry_kept`. Each waits
/// for one event (``Deferral``). No pulled change is lost.
struct KeptChanges {
  typealias Waits = Deferral.Kind

  let connection: SQLiteConnection
  let limits: Limits

  static let schema = """
    CREATE TABLE ferry_kept(                  -- pulled changes that are not in their rows
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      state TEXT NOT NULL,
      waits INTEGER NOT NULL,                 -- for this event: see Deferral; 0: the table or column
      reason TEXT,                            -- of a rejection, for people
      parent_tbl TEXT, parent TEXT,           -- the record for which it waits
      tried INTEGER,                          -- when it was tried last, of the last two kinds
      PRIMARY KEY(tbl, record)
    ) WITHOUT ROWID;
    CREATE INDEX ferry_kept_open ON ferry_kept(sequence) WHERE waits = \(Waits.open);
    CREATE INDEX ferry_kept_parent ON ferry_kept(parent, parent_tbl) WHERE waits = \(Waits.parent);
    CREATE INDEX ferry_kept_table ON ferry_kept(tbl) WHERE waits = \(Waits.table);
    CREATE INDEX ferry_kept_rows ON ferry_kept(waits) WHERE waits = \(Waits.rows);
    CREATE INDEX ferry_kept_unseen ON ferry_kept(tried) WHERE waits >= \(Waits.rows);
    CREATE INDEX ferry_kept_order ON ferry_kept(sequence);
    CREATE INDEX ferry_kept_refused ON ferry_kept(sequence) WHERE waits > \(Waits.schema);

    """

  /// A condition: the local schema rejected the change.
  static let isRefused = "waits > \(Waits.schema)"

  // MARK: Counting

  func isEmpty() throws -> Bool {
    try !connection.exists("SELECT 1 FROM ferry_kept LIMIT 1")
  }

  func count() throws -> Int { try connection.count("SELECT count(*) FROM ferry_kept") }

  /// Returns true if the local schema rejected any record.
  func hasRefused() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_kept WHERE \(Self.isRefused)")
  }

  /// Returns the number of records rejected by the local schema.
  func refusedCount() throws -> Int {
    try connection.count(
      "SELECT count(*) FROM ferry_kept INDEXED BY ferry_kept_refused WHERE \(Self.isRefused)")
  }

  /// Returns the number of rejected records waiting because the user keeps another row with their
  /// unique value.
  func keptLocalCount() throws -> Int {
    try connection.count(
      """
      SELECT count(*) FROM ferry_kept AS k INDEXED BY ferry_kept_refused WHERE \(Self.isRefused)
        AND \(Self.hasQuestion("NOT NULL")) AND NOT \(Self.hasQuestion("NULL"))
      """)
  }

  private static func hasQuestion(_ resolved: String) -> String {
    """
    EXISTS (SELECT 1 FROM ferry_conflicts WHERE record = k.record AND tbl = k.tbl
      AND question = 1 AND holder IS NOT NULL AND resolved IS \(resolved))
    """
  }

  /// Returns the local schema's most frequent reasons to reject records, with the numbers of
  /// records.
  func reasons(limit: Int) throws -> [WaitingRecords] {
    try connection.rows(
      """
      SELECT reason, count(*) FROM ferry_kept INDEXED BY ferry_kept_refused WHERE \(Self.isRefused)
      GROUP BY reason ORDER BY 2 DESC, 1 LIMIT ?
      """, limit
    ) { WaitingRecords(reason: $0.text(0), count: Int($0.int64(1))) }
  }

  // MARK: Writing

  /// Stores a change, instead of an earlier one of the same record.
  ///
  /// - Parameters:
  ///   - deferral: the event the change waits for.
  ///   - reason: the reason for the rejection by the local schema.
  func store(_ change: Change, _ deferral: Deferral, reason: String? = nil) throws {
    let parent: RecordKey? = if case .parent(let key) = deferral { key } else { nil }
    try connection.run(
      """
      INSERT OR REPLACE INTO ferry_kept(tbl, record, sequence, state, reason, waits, parent_tbl,
        parent, tried)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, iif(?6 >= \(Waits.rows), \(Self.nextTry), NULL))
      """, change.key.table, change.key.record, change.sequence, SQLiteText(change.state.encoded()),
      reason, deferral.kind.rawValue, parent?.table, parent?.record)
  }

  /// Stores a change that violates the protocol, unchanged.
  func store(_ change: UnreadableChange, of key: RecordKey) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO ferry_kept(tbl, record, sequence, state, reason, waits, tried)
      VALUES (?, ?, ?, ?, ?, \(Waits.unseen), \(Self.nextTry))
      """, key.table, key.record, change.sequence, SQLiteText(change.writes), change.reason)
  }

  func forget(_ key: RecordKey) throws {
    try connection.run("DELETE FROM ferry_kept WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  // MARK: Reading

  /// Forgets the changes of a table.
  func forget(table: Name) throws {
    try connection.run("DELETE FROM ferry_kept WHERE tbl = ?", table)
  }

  /// Returns true if a record has a kept change.
  func contains(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_kept WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  /// Returns the kept change of a record, also if it is unreadable.
  func change(of key: RecordKey) throws -> KeptChange? {
    try connection.first(
      "\(Self.selection) WHERE tbl = ? AND record = ?", key.table, key.record, row: read)
  }

  private static let selection =
    "SELECT tbl, record, sequence, state, reason, waits FROM ferry_kept"

  /// Returns the next kept change, in the order of sequences, or of records in one table; `nil` after the
  /// last. Reading them one by one takes little memory, and other kept changes may change meanwhile.
  ///
  /// - Parameters:
  ///   - choice: the kind of changes.
  ///   - place: the place of the last one.
  func next(_ choice: KeptChoice, after place: KeptPlace) throws -> KeptChange? {
    switch choice {
    case .ofTable(let table): return try next(in: table, after: place, "1")
    case .unknown(let table): return try next(in: table, after: place, "NOT \(Self.isRefused)")
    default: break
    }
    // The index on the order gives each next change; the table's key would sort all of them each
    // time.
    let (index, condition) =
      switch choice {
      case .refused: ("ferry_kept_refused", Self.isRefused)
      case .open: ("ferry_kept_open", "waits = \(Waits.open)")
      default: ("ferry_kept_order", "1")
      }
    return try connection.first(
      """
      \(Self.selection) INDEXED BY \(index)
      WHERE (sequence, tbl, record) > (?1, ?2, ?3) AND \(condition)
      ORDER BY sequence, tbl, record LIMIT 1
      """, place.sequence, place.key.table, place.key.record, row: read)
  }

  /// Returns the next change of a table, in the order of records: the table's key finds it, however many
  /// changes wait for other tables.
  private func next(
    in table: Name, after place: KeptPlace, _ condition: String
  ) throws -> KeptChange? {
    try connection.first(
      """
      \(Self.selection) WHERE tbl = ? AND record > ? AND \(condition) ORDER BY record LIMIT 1
      """, table, place.key.record, row: read)
  }

  private func read(_ row: SQLiteStatement) -> KeptChange {
    let state = try? RecordState(decoding: row.textBytes(3), limits: limits)
    let key = RecordKey(table: row.name(0), record: row.name(1))
    let isNamed =
      NameRule.fault(in: key.table, limits: limits) == nil
      && NameRule.fault(inRecord: key.record, limits: limits) == nil
    return KeptChange(
      change: Change(sequence: row.int64(2), key: key, state: state ?? RecordState()),
      isReadable: state != nil && isNamed, waits: Deferral.Kind(rawValue: row.int64(5)),
      reason: row.optionalText(4))
  }

  /// Returns the kept changes for one table, or for all, oldest first.
  func changes(_ choice: KeptChoice, limit: Int) throws -> [KeptChange] {
    var found: [KeptChange] = []
    var place = KeptPlace.start
    while found.count < limit, let kept = try next(choice, after: place) {
      place = KeptPlace(kept.change)
      found.append(kept)
    }
    return found
  }

  /// Returns the tables with changes of one kind: rejected by the local schema, or waiting for the
  /// table or for columns.
  func tables(refused: Bool) throws -> [Name] {
    try connection.rows(
      """
      WITH RECURSIVE tables(name) AS (
        SELECT min(tbl) FROM ferry_kept
        UNION ALL SELECT (SELECT min(tbl) FROM ferry_kept WHERE tbl > name) FROM tables
          WHERE name IS NOT NULL)
      SELECT name FROM tables WHERE EXISTS (
        SELECT 1 FROM ferry_kept WHERE tbl = name AND (\(Self.isRefused)) = ?)
      """, refused
    ) { $0.name(0) }
  }
}

extension SQLiteConnection {
  /// Returns the only value of a query, a number.
  func count(_ sql: String) throws -> Int {
    Int(try first(sql) { $0.int64(0) } ?? 0)
  }
}
