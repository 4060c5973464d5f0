import Postgres

/// The PostgreSQL store's tables. Every key starts with the space, so that the schema distributes
/// by it as it is.
enum PostgresStoreSchema {
  /// Each step raises the version by one; steps that have been released are never changed.
  private static let migrations = [
    """
    CREATE TABLE spaces(
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      epoch bigint NOT NULL,
      head bigint NOT NULL DEFAULT 0,
      clamp bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50);
    CREATE TABLE operations(
      space bigint NOT NULL,
      id uuid NOT NULL,
      sequence bigint NOT NULL,
      device uuid NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      kind smallint NOT NULL,
      "time" bigint NOT NULL,
      base bigint NOT NULL,
      data text,
      times text,
      outcome text,
      PRIMARY KEY(space, id)
    );
    CREATE TABLE records(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      sequence bigint NOT NULL,
      whole_below bigint NOT NULL,
      state text NOT NULL,
      PRIMARY KEY(space, tbl, record)
    );
    CREATE UNIQUE INDEX records_by_sequence ON records(space, sequence);
    CREATE TABLE devices(
      space bigint NOT NULL,
      device uuid NOT NULL,
      tail uuid NOT NULL,
      recent bytea NOT NULL,
      operations bigint NOT NULL,
      seen_at bigint NOT NULL,
      PRIMARY KEY(space, device)
    ) WITH (fillfactor = 50);
    CREATE TABLE parked(
      space bigint NOT NULL,
      device uuid NOT NULL,
      tail uuid NOT NULL,
      dependency uuid,
      continues boolean NOT NULL,
      bytes bigint NOT NULL,
      body bytea NOT NULL,
      arrival bigint GENERATED ALWAYS AS IDENTITY,
      PRIMARY KEY(space, device, tail)
    );
    CREATE TABLE tokens(
      hash bytea PRIMARY KEY,
      space text COLLATE "C" NOT NULL,
      role text NOT NULL,
      created_at bigint NOT NULL
    );
    CREATE TABLE meta(key text PRIMARY KEY, value text NOT NULL);
    """,
    // The operation at the head, by which a cursor knows its history again.
    """
    ALTER TABLE spaces ADD COLUMN newest uuid;
    UPDATE spaces SET newest =
      (SELECT id FROM operations WHERE space = spaces.id AND sequence = spaces.head);
    """,
    // What devices are told of values of theirs that lost.
    """
    CREATE TABLE notices(
      space bigint NOT NULL,
      device uuid NOT NULL,
      sequence bigint NOT NULL,
      body text NOT NULL,
      PRIMARY KEY(space, device, sequence)
    );
    """,
    // What a space declares of its tables, and the unique keys that its records hold.
    """
    ALTER TABLE spaces ADD COLUMN schema_version bigint NOT NULL DEFAULT 0;
    ALTER TABLE spaces ADD COLUMN minimum_protocol bigint NOT NULL DEFAULT 1;
    ALTER TABLE parked ADD COLUMN role text NOT NULL DEFAULT 'writer';
    CREATE TABLE unique_keys(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      key_columns text COLLATE "C" NOT NULL,
      value text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      PRIMARY KEY(space, tbl, key_columns, value)
    );
    """,
    retention,
    """
    CREATE TABLE record_digests(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      leaf integer NOT NULL,
      record text COLLATE "C" NOT NULL,
      digest bytea NOT NULL,
      PRIMARY KEY(space, tbl, leaf, record)
    );
    CREATE TABLE leaf_digests(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      leaf integer NOT NULL,
      digest bytea NOT NULL,
      records bigint NOT NULL,
      PRIMARY KEY(space, tbl, leaf)
    ) WITH (fillfactor = 50);
    -- The sums hold every change up to the sequence.
    CREATE TABLE digest_states(
      space bigint PRIMARY KEY,
      sequence bigint NOT NULL
    ) WITH (fillfactor = 50);
    -- What goes before it was folded would stay in the sums: they begin anew.
    CREATE FUNCTION digests_lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      UPDATE digest_states SET sequence = -1
      WHERE space = OLD.space AND sequence >= 0 AND sequence < OLD.sequence;
      RETURN NULL;
    END $$;
    CREATE TRIGGER digests_lost AFTER DELETE ON records
      FOR EACH ROW EXECUTE FUNCTION digests_lost();
    """,
    // Which values of an operation are increments, and what texts were before.
    "ALTER TABLE operations ADD COLUMN marks text",
    // The history's running print, by which a cursor tells it from another with the same operation
    // in the same place. What is there already has none: the print begins with what comes.
    """
    ALTER TABLE spaces ADD COLUMN print bigint NOT NULL DEFAULT 0;
    ALTER TABLE operations ADD COLUMN print bigint;
    """,
    // The last version of each mission, retracted ones too, and what content which space may read:
    // until `ended`, milliseconds since 1970, where the version in force does not name it. What was
    // sent and is not published yet has no mission.
    """
    CREATE TABLE missions(
      space bigint NOT NULL,
      mission text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      PRIMARY KEY(space, mission)
    );
    CREATE TABLE mission_blobs(
      space bigint NOT NULL,
      mission text COLLATE "C" NOT NULL,
      sha256 bytea NOT NULL,
      size bigint NOT NULL,
      ended bigint,
      PRIMARY KEY(space, mission, sha256)
    );
    CREATE INDEX mission_blobs_by_content ON mission_blobs(sha256, space);
    CREATE INDEX mission_blobs_ended ON mission_blobs(ended) WHERE ended IS NOT NULL;
    """,
    // Which run of a server wrote the history behind which place: by that a cursor is known whose
    // place was pruned. What is there already has none.
    """
    ALTER TABLE spaces ADD COLUMN timeline bigint;
    CREATE TABLE timelines(
      space bigint NOT NULL,
      began bigint NOT NULL,
      timeline bigint NOT NULL,
      PRIMARY KEY(space, began)
    );
    CREATE UNIQUE INDEX timelines_by_name ON timelines(space, timeline);
    """,
  ]

  /// Spaces that are there already go on keeping everything.
  private static let retention = """
    ALTER TABLE spaces ADD COLUMN floor bigint NOT NULL DEFAULT 0;
    ALTER TABLE spaces ADD COLUMN retention bigint;
    CREATE TABLE head_times(
      space bigint NOT NULL,
      sequence bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY(space, sequence)
    );
    -- By an expression, so that only the pruner's statements can use them: without statistics a
    -- planner may take them for a look-up by identifier, and read all of a space for each.
    CREATE INDEX operations_by_sequence ON operations((space + 0), sequence);
    CREATE INDEX notices_by_sequence ON notices((space + 0), sequence);
    ALTER TABLE records ADD COLUMN dead boolean NOT NULL DEFAULT false;
    CREATE INDEX records_dead ON records(space, sequence) WHERE dead;
    \(markTombstones);
    ALTER TABLE parked ADD COLUMN arrived_at bigint NOT NULL DEFAULT 0;
    UPDATE parked SET arrived_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    """

  /// A tombstone is known by the stamps of its insert and delete, which stand in this form nowhere
  /// else: a user's columns are sorted by name.
  static let markTombstones = """
    UPDATE records SET dead = true WHERE
      coalesce(substring(state FROM \(stamp("insert"))) COLLATE "C", '')
      <= coalesce(substring(state FROM \(stamp("delete"))) COLLATE "C", '')
    """

  private static func stamp(_ kind: String) -> String {
    #"""
    '\{"sequence":"[0-9]+","time":"([0-9a-f]{16}","device":"[0-9a-f-]{36})","kind":"\#(kind)"'
    """#
  }

  /// What every connection is set to. All reads are look-ups by key or walks of one index; a
  /// planner without statistics would otherwise scan a freshly filled table whole.
  static let connectionSettings = [
    """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
    SET jit = off; SET plan_cache_mode = force_generic_plan; SET statement_timeout = '60s';
    SET idle_in_transaction_session_timeout = '30s'
    """
  ]

  /// Brings the database up to date. Several nodes may start at once: one migrates, the others
  /// wait for its lock.
  ///
  /// - Parameter makes: whether a store is made where there is none.
  static func migrate(_ connection: PostgresConnection, makes: Bool = true) throws {
    if !makes {
      let found = try connection.query(
        .once("SELECT count(*) FROM pg_class WHERE oid = to_regclass('ferry_schema')"))
      guard try found[0].int8(0) > 0 else {
        throw StoreError.failed("the database holds no store of Ferry's")
      }
    }
    try connection.execute(
      """
      BEGIN;
      SELECT pg_advisory_xact_lock(7380945921);
      CREATE TABLE IF NOT EXISTS ferry_schema(version integer NOT NULL)
      """)
    do {
      let found = try connection.query(.once("SELECT coalesce(max(version), 0) FROM ferry_schema"))
      let version = Int(try found[0].int8(0))
      guard version <= migrations.count else {
        throw StoreError.failed(
          "the database was written by a newer ferryd (format \(version)); this one knows "
            + "\(migrations.count)")
      }
      for step in migrations[version...] { try connection.execute(step) }
      if version < migrations.count {
        try connection.execute("INSERT INTO ferry_schema VALUES (\(migrations.count))")
      }
      try connection.execute("COMMIT")
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }
}
