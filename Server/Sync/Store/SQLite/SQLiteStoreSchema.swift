import FerryProtocol
import FerrySQLite

/// The embedded store's tables.
enum SQLiteStoreSchema {
  private static let tables = """
    CREATE TABLE space_names(
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      creator TEXT,
      title TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX space_names_by_creator ON space_names(creator) WHERE creator IS NOT NULL;
    -- `staging`: rows are written behind the head; see `StagingState`. `overlap`: a place up to which
    -- rows of records may be replaced by rows behind it.
    -- `newest` is the operation at the head, by which a cursor knows its history again.
    -- `history_hash` distinguishes that history from another with the same operation in that place.
    CREATE TABLE spaces(
      id INTEGER PRIMARY KEY,
      epoch INTEGER NOT NULL,
      head INTEGER NOT NULL DEFAULT 0,
      clock INTEGER NOT NULL DEFAULT 0,
      newest BLOB,
      schema_version INTEGER NOT NULL DEFAULT 0,
      minimum_protocol INTEGER NOT NULL DEFAULT 1,
      retention_horizon INTEGER NOT NULL DEFAULT 0,
      retention INTEGER,
      history_hash INTEGER NOT NULL DEFAULT 0,
      timeline INTEGER,
      name_changes INTEGER NOT NULL DEFAULT 0,
      staging INTEGER,
      overlap INTEGER
    );
    -- `record`: `StoredRecordName`.
    -- `data` is null for a delete, and for an insert that created its record. The record's state has
    -- those columns. The next operation on the record stores them as `former`.
    -- `marks`: values that are increments, the former values of texts, and the reason.
    -- `ordinal`: the number of operations of the same transaction before it.
    CREATE TABLE operations(
      space INTEGER NOT NULL,
      id BLOB NOT NULL,
      sequence INTEGER NOT NULL,
      device BLOB NOT NULL,
      tbl TEXT NOT NULL,
      record NOT NULL,
      kind INTEGER NOT NULL,
      time INTEGER NOT NULL,
      base INTEGER NOT NULL,
      data TEXT,
      times TEXT,
      outcome TEXT,
      marks TEXT,
      former TEXT,
      history_hash INTEGER NOT NULL,
      ordinal INTEGER NOT NULL,
      PRIMARY KEY(space, id)
    ) WITHOUT ROWID;
    CREATE INDEX operations_by_sequence ON operations(space, sequence);
    CREATE INDEX operations_former ON operations(space, tbl, record, sequence)
      WHERE former IS NOT NULL;
    -- `record`: `StoredRecordName`. `state`: `RecordState.stored()`. A record has a second row from
    -- the time at which a large packet is written until its replaced row is removed.
    CREATE TABLE record_rows(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      record NOT NULL,
      sequence INTEGER NOT NULL,
      whole_below INTEGER NOT NULL,
      state BLOB NOT NULL,
      dead INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX records_by_key ON record_rows(space, tbl, record);
    CREATE UNIQUE INDEX records_by_sequence ON record_rows(space, sequence);
    CREATE INDEX records_dead ON record_rows(space, sequence) WHERE dead;
    CREATE INDEX records_missions ON record_rows(space, tbl, record)
      WHERE tbl = '\(MissionRecord.table)' AND NOT dead;
    -- The records at the head. Each + leaves the choice of an index to the query.
    CREATE VIEW records AS
      SELECT r.space, r.tbl, r.record, r.sequence, r.whole_below, r.state, r.dead
      FROM spaces AS s JOIN record_rows AS r ON r.space = s.id AND +r.sequence <= s.head
      WHERE s.overlap IS NULL OR +r.sequence > s.overlap OR NOT EXISTS (
        SELECT 1 FROM record_rows AS n WHERE n.space = r.space AND n.tbl = r.tbl
          AND n.record = r.record AND +n.sequence > s.overlap AND +n.sequence <= s.head);
    -- Deletes a record with the row that it may have replaced; rows behind the head remain.
    CREATE TRIGGER records_deleted INSTEAD OF DELETE ON records BEGIN
      DELETE FROM record_rows WHERE space = OLD.space AND tbl = OLD.tbl
        AND record = OLD.record AND sequence <= OLD.sequence;
    END;
    -- The times of heads, by which history gets old.
    CREATE TABLE head_times(
      space INTEGER NOT NULL,
      sequence INTEGER NOT NULL,
      at INTEGER NOT NULL,
      PRIMARY KEY(space, sequence)
    ) WITHOUT ROWID;
    -- The run of a server that wrote the history behind each place: it identifies a cursor whose
    -- place was pruned.
    CREATE TABLE timelines(
      space INTEGER NOT NULL,
      began INTEGER NOT NULL,
      timeline INTEGER NOT NULL,
      PRIMARY KEY(space, began)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX timelines_by_name ON timelines(space, timeline);
    -- A device of which nothing was applied yet has no tail. `name` is a label of its owner's.
    CREATE TABLE devices(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      tail BLOB,
      recent BLOB NOT NULL DEFAULT x'',
      operations INTEGER NOT NULL DEFAULT 0,
      seen_at INTEGER NOT NULL,
      principal TEXT NOT NULL DEFAULT 'anonymous',
      trimmed INTEGER NOT NULL DEFAULT 0,
      name TEXT,
      PRIMARY KEY(space, device)
    ) WITHOUT ROWID;
    CREATE TABLE buffered(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      tail BLOB NOT NULL,
      dependency BLOB,
      continues INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      body BLOB NOT NULL,
      arrived_at INTEGER NOT NULL,
      role TEXT NOT NULL DEFAULT 'writer',
      arrival INTEGER PRIMARY KEY,
      UNIQUE(space, device, tail)
    );
    -- The use of a space by principals; the empty name stands for all of them.
    CREATE TABLE usage(
      space INTEGER NOT NULL,
      principal TEXT NOT NULL,
      bytes INTEGER NOT NULL DEFAULT 0,
      records INTEGER NOT NULL DEFAULT 0,
      devices INTEGER NOT NULL DEFAULT 0,
      packets INTEGER NOT NULL DEFAULT 0,
      packet_bytes INTEGER NOT NULL DEFAULT 0,
      day INTEGER NOT NULL DEFAULT 0,
      written INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY(space, principal)
    ) WITHOUT ROWID;
    -- Notices for devices whose values lost.
    CREATE TABLE notices(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      sequence INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY(space, device, sequence)
    ) WITHOUT ROWID;
    CREATE INDEX notices_by_sequence ON notices(space, sequence);
    -- The unique keys that records hold.
    CREATE TABLE unique_keys(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      key_columns TEXT NOT NULL,
      value TEXT NOT NULL,
      record TEXT NOT NULL,
      PRIMARY KEY(space, tbl, key_columns, value)
    ) WITHOUT ROWID;
    -- Changes to them by a large packet: they take effect after it is applied, in slices.
    CREATE TABLE staged_claims(
      space INTEGER NOT NULL,
      number INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      key_columns TEXT NOT NULL,
      value TEXT NOT NULL,
      record TEXT,
      PRIMARY KEY(space, number)
    ) WITHOUT ROWID;
    -- The columns that records of a table ever had. The schema has named the declared ones.
    CREATE TABLE table_columns(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      name TEXT NOT NULL,
      declared INTEGER NOT NULL,
      PRIMARY KEY(space, tbl, name)
    ) WITHOUT ROWID;
    CREATE TABLE record_digests(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      leaf INTEGER NOT NULL,
      record TEXT NOT NULL,
      digest BLOB NOT NULL,
      PRIMARY KEY(space, tbl, leaf, record)
    ) WITHOUT ROWID;
    CREATE TABLE leaf_digests(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      leaf INTEGER NOT NULL,
      digest BLOB NOT NULL,
      records INTEGER NOT NULL,
      PRIMARY KEY(space, tbl, leaf)
    ) WITHOUT ROWID;
    -- The sums hold every change up to the sequence.
    CREATE TABLE digest_states(space INTEGER PRIMARY KEY, sequence INTEGER NOT NULL);
    -- A record that goes before it was folded would stay in the sums: they begin from scratch. A
    -- row behind the head was never folded, and a replaced one leaves the record in its place.
    CREATE TRIGGER digests_lost AFTER DELETE ON record_rows
    WHEN OLD.sequence <= (SELECT head FROM spaces WHERE id = OLD.space) AND NOT EXISTS (
      SELECT 1 FROM record_rows AS n JOIN spaces AS s ON s.id = n.space
      WHERE n.space = OLD.space AND n.tbl = OLD.tbl AND n.record = OLD.record
        AND +n.sequence <= s.head)
    BEGIN
      UPDATE digest_states SET sequence = -1
      WHERE space = OLD.space AND sequence >= 0 AND sequence < OLD.sequence;
    END;
    -- The last version of each mission, also of retracted ones.
    CREATE TABLE missions(
      space INTEGER NOT NULL,
      mission TEXT NOT NULL,
      version INTEGER NOT NULL,
      PRIMARY KEY(space, mission)
    ) WITHOUT ROWID;
    -- The content that each space may read. `ended` is null for content of a version in force, or
    -- milliseconds since 1970. Unpublished uploads have no mission.
    CREATE TABLE mission_blobs(
      space INTEGER NOT NULL,
      mission TEXT NOT NULL,
      sha256 BLOB NOT NULL,
      size INTEGER NOT NULL,
      ended INTEGER,
      PRIMARY KEY(space, mission, sha256)
    ) WITHOUT ROWID;
    CREATE INDEX mission_blobs_by_content ON mission_blobs(sha256, space);
    CREATE INDEX mission_blobs_ended ON mission_blobs(ended) WHERE ended IS NOT NULL;
    -- Tokens apart from their secrets, which can be replaced.
    CREATE TABLE access_tokens(
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      owner TEXT,
      grants TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER,
      used_at INTEGER,
      account TEXT
    ) WITHOUT ROWID;
    CREATE INDEX access_tokens_by_age ON access_tokens(created_at, id);
    CREATE INDEX access_tokens_by_account ON access_tokens(account) WHERE account IS NOT NULL;
    CREATE TABLE token_secrets(
      hash BLOB PRIMARY KEY,
      token TEXT NOT NULL,
      expires_at INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX token_secrets_by_token ON token_secrets(token);
    -- The members of spaces, and the invitations to them.
    CREATE TABLE members(
      principal TEXT NOT NULL,
      space INTEGER NOT NULL,
      role TEXT NOT NULL,
      since INTEGER NOT NULL,
      made_by TEXT NOT NULL,
      PRIMARY KEY(principal, space)
    ) WITHOUT ROWID;
    CREATE INDEX members_by_space ON members(space, principal);
    CREATE TABLE invitations(
      hash BLOB PRIMARY KEY,
      id TEXT NOT NULL,
      space INTEGER NOT NULL,
      role TEXT NOT NULL,
      once INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      made_by TEXT NOT NULL,
      used_by TEXT
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX invitations_by_space ON invitations(space, created_at, id);
    CREATE TABLE audit(
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      at INTEGER NOT NULL,
      principal TEXT NOT NULL,
      action TEXT NOT NULL,
      space TEXT,
      detail TEXT NOT NULL
    );
    CREATE INDEX audit_by_space ON audit(space, number);
    CREATE INDEX audit_by_time ON audit(at);
    CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    PRAGMA user_version=\(StoreFormat.version)
    """

  static let settings = """
    PRAGMA synchronous=FULL;
    PRAGMA cache_size=-65536;
    PRAGMA temp_store=MEMORY;
    PRAGMA journal_size_limit=134217728;
    """

  /// Creates the tables in a new file; several processes may do so at once.
  static func prepare(_ connection: SQLiteConnection) throws {
    // Takes effect in a new file only, before anything else is written to it.
    try connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    try connection.execute("PRAGMA journal_mode=WAL")
    try connection.transaction {
      let found = try connection.prepare("PRAGMA user_version").first { Int($0.int64(0)) } ?? 0
      if found == 0 { try connection.execute(tables) } else { try StoreFormat.check(found) }
      for table in StoreAdditions.all
      where try !connection.exists(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", table.name)
      {
        try connection.execute(table.sql(text: "TEXT"))
      }
    }
  }
}
