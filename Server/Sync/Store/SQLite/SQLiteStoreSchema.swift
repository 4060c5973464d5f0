import FerrySQLite

/// The embedded store's tables. Each step of `migrations` raises `user_version` by one.
enum SQLiteStoreSchema {
  private static let migrations = [
    """
    CREATE TABLE spaces(
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      epoch INTEGER NOT NULL,
      head INTEGER NOT NULL DEFAULT 0,
      clock INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE operations(
      space INTEGER NOT NULL,
      id BLOB NOT NULL,
      sequence INTEGER NOT NULL,
      device BLOB NOT NULL,
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      kind INTEGER NOT NULL,
      time INTEGER NOT NULL,
      base INTEGER NOT NULL,
      data TEXT,
      times TEXT,
      outcome TEXT,
      PRIMARY KEY(space, id)
    ) WITHOUT ROWID;
    CREATE TABLE records(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      whole_below INTEGER NOT NULL,
      state TEXT NOT NULL,
      PRIMARY KEY(space, tbl, record)
    );
    CREATE UNIQUE INDEX records_by_sequence ON records(space, sequence);
    CREATE TABLE devices(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      tail BLOB NOT NULL,
      recent BLOB NOT NULL,
      operations INTEGER NOT NULL,
      seen_at INTEGER NOT NULL,
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
      PRIMARY KEY(space, device, tail)
    );
    CREATE TABLE tokens(
      hash BLOB PRIMARY KEY,
      space TEXT NOT NULL,
      role TEXT NOT NULL,
      created_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
    // The operation at the head, by which a cursor knows its history again.
    """
    ALTER TABLE spaces ADD COLUMN newest BLOB;
    UPDATE spaces SET newest =
      (SELECT id FROM operations WHERE space = spaces.id AND sequence = spaces.head);
    """,
    // Notices for devices whose values lost.
    """
    CREATE TABLE notices(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      sequence INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY(space, device, sequence)
    ) WITHOUT ROWID;
    """,
    // The schema of a space, and the unique keys that its records hold.
    """
    ALTER TABLE spaces ADD COLUMN schema_version INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE spaces ADD COLUMN minimum_protocol INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE buffered ADD COLUMN role TEXT NOT NULL DEFAULT 'writer';
    CREATE TABLE unique_keys(
      space INTEGER NOT NULL,
      tbl TEXT NOT NULL,
      key_columns TEXT NOT NULL,
      value TEXT NOT NULL,
      record TEXT NOT NULL,
      PRIMARY KEY(space, tbl, key_columns, value)
    ) WITHOUT ROWID;
    """,
    retention,
    """
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
    CREATE TABLE digest_states(
      space INTEGER PRIMARY KEY,
      sequence INTEGER NOT NULL               -- the sums hold every change up to here
    );
    -- What goes before it was folded would stay in the sums: they begin anew.
    CREATE TRIGGER digests_lost AFTER DELETE ON records BEGIN
      UPDATE digest_states SET sequence = -1
      WHERE space = OLD.space AND sequence >= 0 AND sequence < OLD.sequence;
    END;
    """,
    // The values of an operation that are increments, and the former values of texts.
    "ALTER TABLE operations ADD COLUMN marks TEXT",
    // The history hash, by which a cursor distinguishes its history from another with the same
    // operation in the same place. Existing rows have none: the hash begins with the next
    // operation.
    """
    ALTER TABLE spaces ADD COLUMN history_hash INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE operations ADD COLUMN history_hash INTEGER;
    """,
    // The last version of each mission, also of retracted ones, and the content that each space may
    // read. `ended` is `NULL` for content of a version in force, or milliseconds since 1970.
    // Unpublished uploads have no mission.
    """
    CREATE TABLE missions(
      space INTEGER NOT NULL,
      mission TEXT NOT NULL,
      version INTEGER NOT NULL,
      PRIMARY KEY(space, mission)
    ) WITHOUT ROWID;
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
    """,
    // The run of a server that wrote the history behind each place: it identifies a cursor whose
    // place was pruned. Existing rows have none.
    """
    ALTER TABLE spaces ADD COLUMN timeline INTEGER;
    CREATE TABLE timelines(
      space INTEGER NOT NULL,
      began INTEGER NOT NULL,
      timeline INTEGER NOT NULL,
      PRIMARY KEY(space, began)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX timelines_by_name ON timelines(space, timeline);
    """,
    // The principals that use devices, even if nothing of a device was applied yet. The use of a
    // space by principals; the empty name stands for all of them. Devices from before there were
    // owners go to the first principal with a credential that uses them.
    """
    ALTER TABLE devices RENAME TO devices_before;
    CREATE TABLE devices(
      space INTEGER NOT NULL,
      device BLOB NOT NULL,
      tail BLOB,
      recent BLOB NOT NULL DEFAULT x'',
      operations INTEGER NOT NULL DEFAULT 0,
      seen_at INTEGER NOT NULL,
      principal TEXT NOT NULL DEFAULT 'anonymous',
      trimmed INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY(space, device)
    ) WITHOUT ROWID;
    INSERT INTO devices(space, device, tail, recent, operations, seen_at)
      SELECT space, device, tail, recent, operations, seen_at FROM devices_before;
    INSERT OR IGNORE INTO devices(space, device, seen_at)
      SELECT space, device, max(arrived_at) FROM buffered GROUP BY space, device;
    DROP TABLE devices_before;
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
    INSERT INTO usage(space, principal, devices, packets, packet_bytes)
      SELECT id, 'anonymous', (SELECT count(*) FROM devices WHERE space = id),
        (SELECT count(*) FROM buffered WHERE space = id),
        (SELECT coalesce(sum(bytes), 0) FROM buffered WHERE space = id) FROM spaces;
    INSERT INTO usage(space, principal, records, bytes)
      SELECT space, '', count(*), sum(length(CAST(state AS BLOB))) FROM records
      WHERE NOT dead AND substr(lower(tbl), 1, 6) <> 'ferry_' GROUP BY space;
    ALTER TABLE spaces ADD COLUMN creator TEXT;
    CREATE INDEX spaces_by_creator ON spaces(creator) WHERE creator IS NOT NULL;
    """,
    access,
  ]

  /// Tokens apart from their secrets, which can be replaced, and the audit log.
  private static let access = """
    CREATE TABLE access_tokens(
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      owner TEXT,
      grants TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER,
      used_at INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE token_secrets(
      hash BLOB PRIMARY KEY,
      token TEXT NOT NULL,
      expires_at INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX token_secrets_by_token ON token_secrets(token);
    INSERT INTO access_tokens(id, name, grants, created_at)
      SELECT lower(hex(substr(hash, 1, 8))), '', json_object(space, role), created_at FROM tokens;
    INSERT INTO token_secrets(hash, token) SELECT hash, lower(hex(substr(hash, 1, 8))) FROM tokens;
    DROP TABLE tokens;
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
    """

  /// Spaces that are there already go on keeping everything.
  private static let retention = """
    ALTER TABLE spaces ADD COLUMN retention_horizon INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE spaces ADD COLUMN retention INTEGER;
    CREATE TABLE head_times(
      space INTEGER NOT NULL,
      sequence INTEGER NOT NULL,
      at INTEGER NOT NULL,
      PRIMARY KEY(space, sequence)
    ) WITHOUT ROWID;
    CREATE INDEX operations_by_sequence ON operations(space, sequence);
    CREATE INDEX notices_by_sequence ON notices(space, sequence);
    ALTER TABLE records ADD COLUMN dead INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX records_dead ON records(space, sequence) WHERE dead;
    \(markTombstones);
    """

  /// The statement that marks tombstones, by the stamps of their insert and delete.
  static let markTombstones = """
    UPDATE records SET dead = 1 WHERE
      coalesce((SELECT max((w.value ->> 'time') || (w.value ->> 'device'))
        FROM json_each(state) AS w WHERE w.value ->> 'kind' = 'insert'), '')
      <= coalesce((SELECT max((w.value ->> 'time') || (w.value ->> 'device'))
        FROM json_each(state) AS w WHERE w.value ->> 'kind' = 'delete'), '')
    """

  static let settings = """
    PRAGMA synchronous=FULL;
    PRAGMA cache_size=-65536;
    PRAGMA temp_store=MEMORY;
    PRAGMA journal_size_limit=134217728;
    """

  /// Migrates the file; several processes may do so at once.
  static func migrate(_ connection: SQLiteConnection) throws {
    // Takes effect in a new file only, before anything else is written to it.
    try connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    try connection.execute("PRAGMA journal_mode=WAL")
    try connection.transaction {
      let version = try connection.prepare("PRAGMA user_version").first { Int($0.int64(0)) } ?? 0
      guard version <= migrations.count else {
        throw StoreError.failed(
          "a newer ferryd wrote the data (format \(version)); this version supports "
            + "\(migrations.count)")
      }
      for step in migrations[version...] { try connection.execute(step) }
      try connection.execute("PRAGMA user_version=\(migrations.count)")
    }
  }
}
