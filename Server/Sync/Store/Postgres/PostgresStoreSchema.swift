import FerryPostgres
import FerryProtocol

/// The PostgreSQL store's tables. Every key starts with the space, so Citus distributes the tables
/// by it (``PostgresDistribution``).
enum PostgresStoreSchema {
  private static let tables = """
    CREATE TABLE ferry_schema(version integer NOT NULL);
    -- Names apart from the spaces: a distributed table cannot keep them unique.
    CREATE TABLE space_names(
      id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
      name text COLLATE "C" PRIMARY KEY,
      creator text COLLATE "C",
      title text NOT NULL DEFAULT ''
    );
    CREATE INDEX space_names_by_creator ON space_names(creator) WHERE creator IS NOT NULL;
    -- `newest` is the operation at the head, by which a cursor knows its history again.
    -- `history_hash` distinguishes that history from another with the same operation in that place.
    CREATE TABLE spaces(
      id bigint PRIMARY KEY,
      epoch bigint NOT NULL,
      head bigint NOT NULL DEFAULT 0,
      clock bigint NOT NULL DEFAULT 0,
      newest uuid,
      schema_version bigint NOT NULL DEFAULT 0,
      minimum_protocol bigint NOT NULL DEFAULT 1,
      retention_horizon bigint NOT NULL DEFAULT 0,
      retention bigint,
      history_hash bigint NOT NULL DEFAULT 0,
      timeline bigint,
      name_changes bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50);
    -- `marks`: values that are increments, the former values of texts, and the reason.
    -- `record`: `StoredRecordName`.
    -- `data` is null for a delete, and for an insert that created its record. The record's state has
    -- those columns. The next operation on the record stores them as `former`.
    -- `ordinal`: the number of operations of the same transaction before it.
    -- The columns are in an order that needs no padding.
    CREATE TABLE operations(
      space bigint NOT NULL,
      sequence bigint NOT NULL,
      "time" bigint NOT NULL,
      base bigint NOT NULL,
      history_hash bigint NOT NULL,
      id uuid NOT NULL,
      device uuid NOT NULL,
      ordinal integer NOT NULL,
      kind smallint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      record bytea NOT NULL,
      data text,
      times text,
      outcome text,
      marks text,
      former text,
      PRIMARY KEY(space, id)
    );
    -- By an expression, so that only the pruner's statements can use them: without statistics a
    -- planner may take them for a look-up by identifier, and read all of a space for each.
    CREATE INDEX operations_by_sequence ON operations((space + 0), sequence);
    CREATE INDEX operations_former ON operations(space, tbl, record, sequence)
      WHERE former IS NOT NULL;
    -- `record`: `StoredRecordName`. `state`: `RecordState.stored()`.
    CREATE TABLE records(
      space bigint NOT NULL,
      sequence bigint NOT NULL,
      whole_below bigint NOT NULL,
      dead boolean NOT NULL DEFAULT false,
      tbl text COLLATE "C" NOT NULL,
      record bytea NOT NULL,
      state bytea NOT NULL,
      PRIMARY KEY(space, tbl, record)
    );
    CREATE UNIQUE INDEX records_by_sequence ON records(space, sequence);
    CREATE INDEX records_dead ON records(space, sequence) WHERE dead;
    CREATE INDEX records_missions ON records(space, record)
      WHERE tbl = '\(MissionRecord.table)' AND NOT dead;
    CREATE INDEX records_large ON records(space, sequence) WHERE \(isLarge("state"));
    -- The times of heads, by which history gets old.
    CREATE TABLE head_times(
      space bigint NOT NULL,
      sequence bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY(space, sequence)
    );
    -- The run of a server that wrote the history behind each place: it identifies a cursor whose
    -- place was pruned.
    CREATE TABLE timelines(
      space bigint NOT NULL,
      began bigint NOT NULL,
      timeline bigint NOT NULL,
      PRIMARY KEY(space, began)
    );
    CREATE UNIQUE INDEX timelines_by_name ON timelines(space, timeline);
    -- A device of which nothing was applied yet has no tail. `name` is a label of its owner's.
    CREATE TABLE devices(
      space bigint NOT NULL,
      device uuid NOT NULL,
      tail uuid,
      recent bytea NOT NULL DEFAULT '',
      operations bigint NOT NULL DEFAULT 0,
      seen_at bigint NOT NULL,
      principal text COLLATE "C" NOT NULL DEFAULT 'anonymous',
      trimmed boolean NOT NULL DEFAULT false,
      name text COLLATE "C",
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
      role text NOT NULL DEFAULT 'writer',
      arrived_at bigint NOT NULL DEFAULT 0,
      PRIMARY KEY(space, device, tail)
    );
    -- The use of a space by principals; the empty name stands for all of them.
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
    -- Notices for devices whose values lost.
    CREATE TABLE notices(
      space bigint NOT NULL,
      device uuid NOT NULL,
      sequence bigint NOT NULL,
      body text NOT NULL,
      PRIMARY KEY(space, device, sequence)
    );
    CREATE INDEX notices_by_sequence ON notices((space + 0), sequence);
    -- The unique keys that records hold.
    CREATE TABLE unique_keys(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      key_columns text COLLATE "C" NOT NULL,
      value text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      PRIMARY KEY(space, tbl, key_columns, value)
    );
    -- The columns that records of a table ever had. The schema has named the declared ones.
    CREATE TABLE table_columns(
      space bigint NOT NULL,
      tbl text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      declared boolean NOT NULL,
      PRIMARY KEY(space, tbl, name)
    );
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
    -- The last version of each mission, also of retracted ones.
    CREATE TABLE missions(
      space bigint NOT NULL,
      mission text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      PRIMARY KEY(space, mission)
    );
    -- The content that each space may read. `ended` is null for content of a version in force, or
    -- milliseconds since 1970. Unpublished uploads have no mission.
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
    -- Tokens apart from their secrets, which can be replaced.
    CREATE TABLE access_tokens(
      id text COLLATE "C" PRIMARY KEY,
      name text NOT NULL,
      owner text,
      grants text NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint,
      used_at bigint,
      account text
    );
    CREATE INDEX access_tokens_by_age ON access_tokens(created_at, id);
    CREATE INDEX access_tokens_by_account ON access_tokens(account) WHERE account IS NOT NULL;
    CREATE TABLE token_secrets(
      hash bytea PRIMARY KEY,
      token text COLLATE "C" NOT NULL,
      expires_at bigint
    );
    CREATE INDEX token_secrets_by_token ON token_secrets(token);
    -- The members of spaces, and the invitations to them, apart from the spaces: a user's are in many.
    CREATE TABLE members(
      principal text COLLATE "C" NOT NULL,
      space bigint NOT NULL,
      role text NOT NULL,
      since bigint NOT NULL,
      made_by text NOT NULL,
      PRIMARY KEY(principal, space)
    );
    CREATE INDEX members_by_space ON members(space, principal);
    CREATE TABLE invitations(
      hash bytea PRIMARY KEY,
      id text COLLATE "C" NOT NULL,
      space bigint NOT NULL,
      role text NOT NULL,
      once bigint NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint NOT NULL,
      made_by text COLLATE "C" NOT NULL,
      used_by text COLLATE "C"
    );
    CREATE UNIQUE INDEX invitations_by_space ON invitations(space, created_at, id);
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
    CREATE TABLE meta(key text PRIMARY KEY, value text NOT NULL);
    INSERT INTO ferry_schema VALUES (\(StoreFormat.version))
    """

  /// Returns the condition of a record whose bytes a pull has to count.
  ///
  /// - Parameter state: The column with the state.
  static func isLarge(_ state: String) -> String { "octet_length(\(state)) > 1024" }

  /// The settings of every connection. All reads are look-ups by key or walks of one index; a
  /// planner without statistics would otherwise scan a freshly filled table whole. A space's lock
  /// is waited for as long as a few large commits take.
  ///
  /// Citus needs the value of a parameter to find the worker with a space, which a generic plan
  /// lacks.
  static func settings(isDistributed: Bool) -> PostgresSettings {
    [
      ("enable_seqscan", "off"), ("enable_bitmapscan", "off"), ("enable_hashjoin", "off"),
      ("enable_mergejoin", "off"), ("enable_material", "off"), ("enable_memoize", "off"),
      ("jit", "off"), ("plan_cache_mode", isDistributed ? "auto" : "force_generic_plan"),
      ("statement_timeout", "30s"), ("lock_timeout", "10s"),
      ("idle_in_transaction_session_timeout", "30s"),
    ]
  }

  private static let lockKey: Int64 = 7_380_945_921

  /// Creates the tables in an empty database. Several nodes may start at once.
  ///
  /// - Parameter createsIfMissing: Whether a store is made if there is none.
  static func prepare(_ connection: PostgresConnection, createsIfMissing: Bool) throws {
    try connection.transaction { connection in
      // One node at a time creates the tables; others wait until it has committed.
      try lock(connection)
      if let found = try version(on: connection) {
        try StoreFormat.check(found)
      } else {
        guard createsIfMissing else {
          throw StoreError.failed("the database contains no store of Ferry")
        }
        try connection.execute(tables)
      }
      for table in StoreAdditions.all {
        let found = try connection.query(
          .once("SELECT to_regclass(\(quoted(postgres: table.name))) IS NOT NULL"))
        if try found[0].bool(0) { continue }
        try connection.execute(table.sql(text: #"text COLLATE "C""#))
      }
    }
  }

  /// Waits for others that create or distribute the tables, until the transaction ends.
  static func lock(_ connection: PostgresConnection) throws {
    try connection.execute(single: "SELECT pg_advisory_xact_lock(\(lockKey))")
  }

  /// Returns the version of the data's format; `nil` if there is no store in the database.
  private static func version(on connection: PostgresConnection) throws -> Int? {
    let table = try connection.query(.once("SELECT to_regclass('ferry_schema') IS NOT NULL"))
    guard try table[0].bool(0) else { return nil }
    let found = try connection.query(.once("SELECT coalesce(max(version), 0) FROM ferry_schema"))
    return Int(try found[0].int8(0))
  }
}
