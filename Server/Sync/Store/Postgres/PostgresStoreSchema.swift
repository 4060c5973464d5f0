import FerryPostgres

/// The PostgreSQL store's tables. Every key starts with the space, so that the schema distributes
/// by it as it is.
enum PostgresStoreSchema {
  /// Each step raises the version by one; steps that have been released are never changed.
  private static let migrations: [PostgresMigration.Step] = [
    """
    CREATE TABLE spaces(
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      epoch bigint NOT NULL,
      head bigint NOT NULL DEFAULT 0,
      clock bigint NOT NULL DEFAULT 0
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
    CREATE TABLE buffered(
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
    // Notices for devices whose values lost.
    """
    CREATE TABLE notices(
      space bigint NOT NULL,
      device uuid NOT NULL,
      sequence bigint NOT NULL,
      body text NOT NULL,
      PRIMARY KEY(space, device, sequence)
    );
    """,
    // The schema of a space, and the unique keys that its records hold.
    """
    ALTER TABLE spaces ADD COLUMN schema_version bigint NOT NULL DEFAULT 0;
    ALTER TABLE spaces ADD COLUMN minimum_protocol bigint NOT NULL DEFAULT 1;
    ALTER TABLE buffered ADD COLUMN role text NOT NULL DEFAULT 'writer';
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
    // The values of an operation that are increments, and the former values of texts.
    "ALTER TABLE operations ADD COLUMN marks text",
    // The history hash, by which a cursor distinguishes its history from another with the same
    // operation in the same place. Existing rows have none: the hash begins with the next
    // operation.
    """
    ALTER TABLE spaces ADD COLUMN history_hash bigint NOT NULL DEFAULT 0;
    ALTER TABLE operations ADD COLUMN history_hash bigint;
    """,
    // The last version of each mission, also of retracted ones, and the content that each space may
    // read. `ended` is `NULL` for content of a version in force, or milliseconds since 1970.
    // Unpublished uploads have no mission.
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
    // The run of a server that wrote the history behind each place: it identifies a cursor whose
    // place was pruned. Existing rows have none.
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
    // The principals that use devices, even if nothing of a device was applied yet. The use of a
    // space by principals; the empty name stands for all of them. Devices from before there were
    // owners go to the first principal with a credential that uses them.
    """
    ALTER TABLE devices ALTER COLUMN tail DROP NOT NULL;
    ALTER TABLE devices ALTER COLUMN recent SET DEFAULT '';
    ALTER TABLE devices ALTER COLUMN operations SET DEFAULT 0;
    ALTER TABLE devices ADD COLUMN principal text COLLATE "C" NOT NULL DEFAULT 'anonymous';
    ALTER TABLE devices ADD COLUMN trimmed boolean NOT NULL DEFAULT false;
    CREATE TABLE usage(
      space bigint NOT NULL,
      principal text COLLATE "C" NOT NULL,
      bytes bigint NOT NULL DEFAULT 0,
      records bigint NOT NULL DEFAULT 0,
      devices bigint NOT NULL DEFAULT 0,
      packets bigint NOT NULL DEFAULT 0,
      packet_bytes bigint NOT NULL DEFAULT 0,
      day bigint NOT NULL DEFAULT 0,
      written bigint NOT NULL DEFAULT 0,
      PRIMARY KEY(space, principal)
    ) WITH (fillfactor = 50);
    INSERT INTO devices(space, device, seen_at)
      SELECT space, device, max(arrived_at) FROM buffered GROUP BY space, device
      ON CONFLICT DO NOTHING;
    INSERT INTO usage(space, principal, devices, packets, packet_bytes)
      SELECT id, 'anonymous', (SELECT count(*) FROM devices WHERE space = id), count(p.space),
        coalesce(sum(p.bytes), 0)
      FROM spaces LEFT JOIN buffered AS p ON p.space = id GROUP BY id;
    INSERT INTO usage(space, principal, records, bytes)
      SELECT space, '', count(*), sum(octet_length(state)) FROM records
      WHERE NOT dead AND left(lower(tbl), 6) <> 'ferry_' GROUP BY space;
    ALTER TABLE spaces ADD COLUMN creator text COLLATE "C";
    CREATE INDEX spaces_by_creator ON spaces(creator) WHERE creator IS NOT NULL;
    """,
    access,
  ]

  /// Tokens apart from their secrets, which can be replaced, and the audit log.
  private static let access: PostgresMigration.Step = """
    CREATE TABLE access_tokens(
      id text COLLATE "C" PRIMARY KEY,
      name text NOT NULL,
      owner text,
      grants text NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint,
      used_at bigint
    );
    CREATE TABLE token_secrets(
      hash bytea PRIMARY KEY,
      token text COLLATE "C" NOT NULL,
      expires_at bigint
    );
    CREATE INDEX token_secrets_by_token ON token_secrets(token);
    INSERT INTO access_tokens(id, name, grants, created_at)
      SELECT encode(substring(hash FROM 1 FOR 8), 'hex'), '',
        json_build_object(space, role)::text, created_at FROM tokens;
    INSERT INTO token_secrets(hash, token)
      SELECT hash, encode(substring(hash FROM 1 FOR 8), 'hex') FROM tokens;
    DROP TABLE tokens;
    CREATE TABLE audit(
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      at bigint NOT NULL,
      principal text NOT NULL,
      action text NOT NULL,
      space text COLLATE "C",
      detail text NOT NULL
    );
    CREATE INDEX audit_by_space ON audit(space, number);
    CREATE INDEX audit_by_time ON audit(at);
    """

  /// Spaces that are there already go on keeping everything.
  private static let retention = PostgresMigration.Step(
    """
    ALTER TABLE spaces ADD COLUMN retention_horizon bigint NOT NULL DEFAULT 0;
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
    ALTER TABLE buffered ADD COLUMN arrived_at bigint NOT NULL DEFAULT 0;
    UPDATE buffered SET arrived_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    """,
    slice: PostgresMigration.slice(
      """
      \(markTombstones)
      AND (space, tbl, record) IN (SELECT space, tbl, record FROM part)
      """))

  /// The statement that marks tombstones. It finds them by the stamps of their insert and delete. A
  /// user's columns are sorted by name, so this form occurs nowhere else.
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

  /// The settings of every connection. All reads are look-ups by key or walks of one index; a
  /// planner without statistics would otherwise scan a freshly filled table whole. A space's lock
  /// is waited for as long as a few large commits take.
  static let connectionSettings = [
    """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
    SET jit = off; SET plan_cache_mode = force_generic_plan; SET statement_timeout = '30s';
    SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '30s'
    """
  ]

  /// Migrates the database, on a separate connection. Several nodes may start at once.
  ///
  /// - Parameter createsIfMissing: Whether a store is made if there is none.
  static func migrate(
    _ url: String, createsIfMissing: Bool, report: @escaping @Sendable (String) -> Void
  ) async throws {
    var options = PostgresPool.Options()
    options.feelsPulse = true
    options.needsWrites = true
    let pool = try PostgresPool(
      url: url, connections: 1, prepareConnection: PostgresMigration.connectionSettings,
      options: options)
    let migration = PostgresMigration(
      steps: migrations, createsIfMissing: createsIfMissing, report: report)
    let result = await Result { try await pool.run { try migration.run(on: $0) } }
    await pool.close()
    try result.get()
  }
}

extension Result where Failure == any Error {
  fileprivate init(_ body: () async throws -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
