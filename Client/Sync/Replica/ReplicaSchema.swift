import FerryProtocol
import FerrySQLite

/// Ferry's own tables in the replica's file. Their names begin with `ferry_`; the rest of the
/// file is the user's.
enum ReplicaSchema {
  /// The version of the statements below; raised with every change after the first release.
  static let version: Int64 = 1

  static let statements = """
    CREATE TABLE ferry_replica(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      version INTEGER NOT NULL,
      device BLOB NOT NULL,
      server TEXT, space TEXT,
      epoch TEXT,
      applied INTEGER NOT NULL DEFAULT 0,     -- the cursor: everything up to here is applied
      received INTEGER NOT NULL DEFAULT 0,    -- past applied while pages are staged
      head INTEGER NOT NULL DEFAULT 0,        -- the newest that the server reported
      clock INTEGER NOT NULL DEFAULT 0,       -- the hybrid clock's last reading
      clock_offset INTEGER NOT NULL DEFAULT 0,-- server minus device, milliseconds
      tail BLOB,                              -- the last operation of the newest packet
      last_sync INTEGER,                      -- milliseconds since 1970
      anchor_head INTEGER, anchor BLOB,       -- the cursor's anchor
      anchor_history_hash INTEGER, anchor_timeline INTEGER,
      replacing INTEGER NOT NULL DEFAULT 0,   -- a pull from the start is under way that replaces
                                              -- what is here: see Replacement
      chain_start INTEGER NOT NULL DEFAULT 0, -- packets above this number bear this device's name
      schema INTEGER NOT NULL DEFAULT 0,      -- the version of the space's schema
      has_token INTEGER NOT NULL DEFAULT 0,   -- the credential store has a token
      writes_refused TEXT,                    -- why the server accepts no operation with the token
      authorities TEXT,                       -- a PEM file that vouches for the server
      is_found INTEGER NOT NULL DEFAULT 0,    -- the server has had the space
      removed_order INTEGER NOT NULL DEFAULT 0,-- the newest place of a removed operation
      tried_order INTEGER NOT NULL DEFAULT 0  -- own operations up to here free no deferred change
    );
    CREATE TABLE ferry_tables(
      name TEXT PRIMARY KEY,                  -- in the space
      local TEXT NOT NULL,                    -- in this file
      identity TEXT NOT NULL DEFAULT 'text',  -- how its keys become identifiers: see KeyIdentity
      space_column TEXT,                      -- here, of a table with rows of several spaces
      signature TEXT NOT NULL,                -- key and columns that the triggers know
      numbers TEXT NOT NULL DEFAULT '{}',     -- the mapped tables of its columns, by their names here
      direction TEXT NOT NULL DEFAULT 'two-way',
      filled TEXT,                            -- the direction after the next complete pull
      since INTEGER,                          -- the place after which writes may be unrecorded
      remade INTEGER NOT NULL DEFAULT 0,      -- whether they are of whole rows, or only of columns
      recorded INTEGER NOT NULL DEFAULT 0,    -- the newest operation from before that
      is_shared INTEGER NOT NULL DEFAULT 0,   -- the space knows it by this name: see Spelling
      trigger TEXT,                           -- the insert trigger and its place, as created
      fault TEXT                              -- why rows of it cannot be recorded
    ) WITHOUT ROWID;
    CREATE TABLE ferry_columns(               -- the columns that the triggers know
      tbl TEXT NOT NULL,
      name TEXT NOT NULL,
      is_new INTEGER NOT NULL,                -- its values may be unrecorded
      is_shared INTEGER NOT NULL DEFAULT 0,   -- as of ferry_tables
      PRIMARY KEY(tbl, name)
    ) WITHOUT ROWID;
    CREATE TABLE ferry_clashes(               -- names of the space that differ in case from one here
      tbl TEXT NOT NULL,
      col TEXT NOT NULL,                      -- empty: the row is about the table
      PRIMARY KEY(tbl, col)
    ) WITHOUT ROWID;
    CREATE TABLE ferry_untracked(             -- tables that were tracked before
      name TEXT PRIMARY KEY,
      since INTEGER NOT NULL,                 -- the place after which their writes are unrecorded
      identity TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE ferry_packets(               -- what was sent (SPEC.md §4)
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      dependency BLOB,
      tail BLOB NOT NULL,
      from_order INTEGER NOT NULL,            -- the operations in it, frozen since
      to_order INTEGER NOT NULL,
      merged INTEGER NOT NULL,
      continues INTEGER NOT NULL,
      operations INTEGER NOT NULL,
      state TEXT NOT NULL,                    -- frozen, buffered or acknowledged
      first INTEGER, last INTEGER,            -- the places its operations took
      clean INTEGER NOT NULL DEFAULT 0,       -- nothing of it was overruled
      schema INTEGER NOT NULL DEFAULT 0,      -- by whose version it was merged
      applied INTEGER NOT NULL DEFAULT 0,     -- a page or a history hash shows that it is in the
                                              -- server's chain of this device
      history_hash_before INTEGER,            -- the history hash before and after it
      history_hash INTEGER,
      timeline INTEGER,                       -- that it was applied on
      archived INTEGER,                       -- when it went to the archive, milliseconds since
                                              -- 1970; NULL: the cursor has not passed it
      archived_here INTEGER                   -- the same by this device's clock
    );
    CREATE INDEX ferry_packets_current ON ferry_packets(archived) WHERE archived IS NULL;
    CREATE VIEW ferry_current_packets AS SELECT * FROM ferry_packets WHERE archived IS NULL;
    CREATE VIEW ferry_archived_packets AS SELECT * FROM ferry_packets WHERE archived IS NOT NULL;
    CREATE TABLE ferry_staged(                -- pulled pages (SPEC.md §5)
      page INTEGER PRIMARY KEY,
      changes INTEGER NOT NULL,
      body BLOB NOT NULL                      -- the page; a large one compressed
    );
    CREATE TABLE ferry_conflicts(
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      at INTEGER NOT NULL,
      operation BLOB NOT NULL,
      tbl TEXT NOT NULL, record TEXT NOT NULL, col TEXT,
      lost TEXT NOT NULL,                     -- the value as JSON
      loser_time INTEGER NOT NULL, loser BLOB NOT NULL,
      winner_time INTEGER NOT NULL, winner BLOB NOT NULL,
      sequence INTEGER,                       -- the deciding operation's place, where it is known
      question INTEGER NOT NULL DEFAULT 0,    -- the user is to decide
      resolved INTEGER,                       -- when that was answered, milliseconds since 1970
      holder TEXT                             -- the record here that has the unique value
    );
    CREATE TABLE ferry_log(
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      at INTEGER NOT NULL,
      event TEXT NOT NULL,
      detail TEXT NOT NULL
    );
    """ + operations + refresh + checks + formerNames + marks + missions + deviceNames
    + KeptChanges.schema + KeyNumbers.schema + FormerRows.schema
    + OverruledWrites.schema + StagedChanges.view

  /// This device's own operations. An operation changes state and is never copied.
  ///
  /// The numbers of the states are those of ``OperationState``. The archive is a prefix of the
  /// table: every pending operation comes after it, so a scan of the queue begins there.
  private static let operations = """
    CREATE TABLE ferry_operations(
      seq INTEGER PRIMARY KEY,                 -- the place in the queue
      state INTEGER NOT NULL DEFAULT 0,
      id BLOB NOT NULL,
      grp INTEGER NOT NULL,                   -- operations of one local transaction
      base INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      kind TEXT NOT NULL,
      data TEXT,                              -- of a delete: the row as it was
      concurrent INTEGER NOT NULL DEFAULT 0,  -- a change of the record has come meanwhile:
                                              -- 1 before it was frozen, 2 later
      was TEXT,                               -- of an update: what the columns held before
      marks TEXT,                             -- columns of data that are more than values:
                                              -- "+votes" an increment, "~body" a text to merge
      reason TEXT,                            -- why it overrules the values of other devices
      apart INTEGER NOT NULL DEFAULT 0        -- its packet keeps it separate from earlier ones on
                                              -- the record, by bases that may be forgotten since
    );
    CREATE INDEX ferry_operations_pending ON ferry_operations(record) WHERE state = 0;
    CREATE INDEX ferry_operations_concurrent ON ferry_operations(seq)
      WHERE state = 0 AND concurrent <> 0;
    CREATE INDEX ferry_operations_deleted ON ferry_operations(record) WHERE kind = 'delete';
    CREATE INDEX ferry_operations_unsent ON ferry_operations(record) WHERE state = 2;
    CREATE INDEX ferry_operations_quarantined ON ferry_operations(record) WHERE state = 3;
    CREATE TABLE ferry_failures(              -- why operations are neither pending nor confirmed
      seq INTEGER PRIMARY KEY,                -- as in ferry_operations
      entry INTEGER,                          -- in quarantine: one refusal, and what went with it
      code TEXT,                              -- NULL: it went along with a refused one
      detail TEXT,
      holder TEXT,                            -- the record that has the unique value
      at INTEGER
    );
    CREATE INDEX ferry_failures_entry ON ferry_failures(entry) WHERE entry IS NOT NULL;
    CREATE VIEW ferry_pending AS              -- operations in the queue; the last columns for people
      SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks, reason, apart,
        \(identifier("hex(id)")) AS operation, \(identifier(dependency)) AS dependency,
        \(time(ofID: "id")) AS time
      FROM ferry_operations AS o WHERE state = 0 AND seq > coalesce(
        (SELECT to_order FROM ferry_packets WHERE archived IS NOT NULL
         ORDER BY number DESC LIMIT 1), 0);
    CREATE VIEW ferry_archive AS              -- confirmed operations: a server that is restored
      SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks, reason, apart
      FROM ferry_operations WHERE state = 1;  -- from a backup may need them again
    CREATE VIEW ferry_unsent AS               -- out of the queue until the user says so
      SELECT o.seq, id, grp, base, tbl, record, kind, data, was, marks, reason, f.detail
      FROM ferry_operations AS o JOIN ferry_failures AS f ON f.seq = o.seq WHERE state = 2;
    CREATE VIEW ferry_quarantine AS           -- refused for good, or overruled
      SELECT o.seq, f.entry, id, grp, tbl, record, kind, data, was, marks, reason, f.code,
        f.detail, f.holder, f.at
      FROM ferry_operations AS o JOIN ferry_failures AS f ON f.seq = o.seq WHERE state = 3;
    """

  /// The SQL of the digits of the operation before an operation `o`, on which it depends (S1.12). A packet
  /// ends with its tail; operations that cancelled each other out may come after that.
  private static let dependency = """
    hex(coalesce((SELECT p.id FROM ferry_operations AS p WHERE p.seq < o.seq AND p.state = 0
        AND p.seq > coalesce((SELECT to_order FROM ferry_packets WHERE to_order < o.seq
          ORDER BY number DESC LIMIT 1), 0)
      ORDER BY p.seq DESC LIMIT 1), (SELECT tail FROM ferry_packets
      WHERE to_order < o.seq ORDER BY number DESC LIMIT 1)))
    """

  /// Returns the SQL of an identifier's text; NULL without digits.
  private static func identifier(_ digits: String) -> String {
    let parts = [(1, 8), (9, 4), (13, 4), (17, 4), (21, 12)].map { "substr(h, \($0), \($1))" }
    return """
      (SELECT lower(\(parts.joined(separator: " || '-' || ")))
        FROM (SELECT \(digits) AS h) WHERE h <> '')
      """
  }

  /// Returns the SQL of the time in an identifier (RFC 9562 §5.7): the first 48 bits are
  /// milliseconds.
  private static func time(ofID id: String) -> String {
    let digits = (0..<12).map { place in
      "((instr('0123456789ABCDEF', substr(hex(\(id)), \(place + 1), 1)) - 1) << \(44 - 4 * place))"
    }
    return """
      strftime('%Y-%m-%dT%H:%M:%fZ', (\(digits.joined(separator: " + "))) / 1000.0, 'unixepoch')
      """
  }

  private static let refresh = """
    CREATE TABLE ferry_refresh(               -- records to fetch whole with the next pull
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      fetched INTEGER NOT NULL DEFAULT 0,     -- 1: among the staged pages; 2: the server rejects the
                                              -- request for it; 3: this pull asks again
      overruled INTEGER NOT NULL DEFAULT 0,   -- the server overruled an operation without a conflict
      PRIMARY KEY(tbl, record)
    ) WITHOUT ROWID;
    CREATE TABLE ferry_schemas(               -- what the space declares of its tables
      version INTEGER PRIMARY KEY,
      document TEXT NOT NULL
    );
    CREATE INDEX ferry_conflicts_record ON ferry_conflicts(record);
    CREATE INDEX ferry_conflicts_open ON ferry_conflicts(seq)
      WHERE question = 1 AND resolved IS NULL;
    CREATE UNIQUE INDEX ferry_conflicts_once
      ON ferry_conflicts(operation, record, tbl, ifnull(col, ''), loser, loser_time);
    """ + batches + uploads

  /// The last state of the schema with fitting triggers, so the file need not check them at each
  /// opening.
  private static let checks = """
    CREATE TABLE ferry_checked(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      mark TEXT NOT NULL
    );
    """

  /// The former identifiers of this replica, and until when it used them: later, a copy of it may
  /// have written under the same identifier.
  private static let formerNames = """
    CREATE TABLE ferry_former_names(
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      device BLOB NOT NULL UNIQUE,
      until INTEGER NOT NULL                  -- the hybrid clock's reading then
    );
    """

  /// The cursor's places by the server's clock, and when the current list began.
  private static let marks = """
    CREATE TABLE ferry_list(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      began INTEGER                           -- the head when its first page was read
    );
    CREATE TABLE ferry_marks(
      at INTEGER PRIMARY KEY,                 -- milliseconds since 1970
      applied INTEGER NOT NULL
    );
    """

  /// The rows changed here by pending batches.
  private static let batches = """
    CREATE TABLE ferry_batch_rows(
      seq INTEGER NOT NULL,                   -- the batch among the pending operations
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      PRIMARY KEY(seq, record)
    ) WITHOUT ROWID;
    CREATE INDEX ferry_batch_rows_record ON ferry_batch_rows(record);
    """

  /// Creates or checks the tables. Safe if several processes open a new file at once.
  static func prepare(
    _ connection: SQLiteConnection, path: String, newDevice: () -> DeviceID
  ) throws {
    try connection.execute("PRAGMA journal_mode=WAL")
    try connection.transaction {
      let exists = try connection.prepare(
        "SELECT 1 FROM sqlite_schema WHERE name = 'ferry_replica'"
      ).exists()
      if !exists {
        try create(on: connection, device: newDevice())
        try connection.execute(FileSpaces.schema)
      }
      let found = try connection.prepare("SELECT version FROM ferry_replica").first { $0.int64(0) }
      guard found == version else {
        throw ReplicaError.cannotOpen(
          path: path,
          "another version of Ferry wrote it (format \(found ?? 0), this version supports "
            + "\(version)); update Ferry")
      }
    }
  }

  /// Creates the tables of a space's ledger.
  static func create(on connection: SQLiteConnection, device: DeviceID) throws {
    try connection.execute(statements)
    try connection.prepare(
      "INSERT INTO ferry_replica(one, version, device) VALUES (1, ?, ?)"
    ).run(version, device.value.bytes)
  }

  /// The settings of every connection. The user declares foreign keys, and Ferry enforces them.
  /// With recursive triggers, INSERT OR REPLACE records the rows it removes. They are off for
  /// statements that replace no rows (``SQLiteConnection/fireTriggersByDefault()``).
  static let connectionSettings = """
    PRAGMA foreign_keys=ON;
    PRAGMA recursive_triggers=ON;
    PRAGMA synchronous=NORMAL;
    PRAGMA cache_size=-16384;
    PRAGMA temp_store=FILE;
    PRAGMA journal_size_limit=67108864;
    """
}
