import FerryPostgres
import FerryProtocol

/// A write of a program to a mirrored table, as PostgreSQL has recorded it.
struct CapturedWrite: Sendable, Equatable {
  enum Kind: String, Sendable {
    case insert = "I"
    case update = "U"
    case delete = "D"
  }

  var transaction: String
  var table: String
  var kind: Kind
  var key: [String?]
  /// The written columns.
  var names: [String] = []
  var values: [String?] = []
  /// The values before an update.
  var former: [String?] = []
}

/// Some captured writes in the order of their transactions.
struct CapturedWrites: Sendable {
  var writes: [CapturedWrite] = []
  /// The last identifier of each transaction that was read.
  var read: [String: Int64] = [:]
}

/// A mirror's tables of its own in PostgreSQL. All calls block.
struct MirrorLedger: Sendable {
  /// Writes of one step; a larger transaction is one step up to ``transactionMax``.
  static let stepMax: Int64 = 20_000
  /// Writes of a transaction that reach the space together; a larger one is split.
  static let transactionMax: Int64 = 100_000

  let number: Int64

  // MARK: Tables

  static let tables = """
    CREATE SCHEMA IF NOT EXISTS ferry_mirror;
    CREATE TABLE IF NOT EXISTS ferry_mirror.mirrors(
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE,
      space text NOT NULL,
      schema text NOT NULL,
      layout text NOT NULL DEFAULT '',      -- of the tables, as they were made
      file text NOT NULL DEFAULT '',        -- identifies the mirror's file
      turn bigint NOT NULL DEFAULT 0,       -- of the last step of the file that the tables have
      applied bigint NOT NULL DEFAULT 0,    -- the sequence of the space that the tables have
      at timestamptz);
    CREATE TABLE IF NOT EXISTS ferry_mirror.captured(
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      mirror bigint NOT NULL,
      xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
      tab text NOT NULL,
      kind "char" NOT NULL,                 -- I, U or D
      key text[] NOT NULL,
      names text[], vals text[], olds text[]);
    CREATE TABLE IF NOT EXISTS ferry_mirror.deferred(
      mirror bigint NOT NULL, tab text NOT NULL, key text[] NOT NULL,
      reason text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (mirror, tab, key));
    CREATE OR REPLACE FUNCTION ferry_mirror.tell() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS '
      BEGIN
        IF current_setting(''ferry.mirror'', true) IS DISTINCT FROM TG_ARGV[0] THEN
          PERFORM pg_notify(''ferry_mirror'', TG_ARGV[0]);
        END IF;
        RETURN NULL;
      END';
    """

  /// The channel on which PostgreSQL reports captured writes; the payload is the mirror's number.
  static let channel = "ferry_mirror"

  /// Ends the capture in all tables, whatever the schema of the space is now.
  var releaseAll: String {
    """
    DO '
      DECLARE found record;
      BEGIN
        FOR found IN SELECT tgrelid::regclass AS target, tgname FROM pg_trigger
          WHERE tgname IN (''ferry_\(number)_row'', ''ferry_\(number)_truncate'', ''ferry_\(number)_told'')
        LOOP
          EXECUTE format(''DROP TRIGGER %I ON %s'', found.tgname, found.target);
        END LOOP;
        FOR found IN SELECT oid::regprocedure AS target FROM pg_proc
          WHERE pronamespace = ''ferry_mirror''::regnamespace AND proname ~ ''^capture_\(number)_''
        LOOP
          EXECUTE format(''DROP FUNCTION %s'', found.target);
        END LOOP;
      END'
    """
  }

  // MARK: Captured writes

  /// Reads whole transactions, so that one comes after those whose writes it has seen: a
  /// transaction that saw another's write wrote later, and so has the greater last identifier.
  func captured(_ connection: PostgresConnection) throws -> CapturedWrites {
    let rows = try connection.query(
      .once(
        """
        SELECT xid::text, count(*), max(id) FROM ferry_mirror.captured WHERE mirror = $1
        GROUP BY xid ORDER BY max(id) LIMIT 1000
        """), [.int8(number)])
    var (taken, count): ([String], Int64) = ([], 0)
    for row in rows {
      let size = try row.int8(1)
      if !taken.isEmpty, count + size > Self.stepMax { break }
      taken.append(try row.text(0))
      count += size
    }
    var found = CapturedWrites()
    if taken.isEmpty { return found }
    let places = Dictionary(uniqueKeysWithValues: zip(taken, taken.indices))
    var writes: [(place: Int, write: CapturedWrite)] = []
    let writesRead = try connection.query(
      .once(
        """
        SELECT id, xid::text, tab, kind::text, key, names, vals, olds FROM ferry_mirror.captured
        WHERE mirror = $1 AND xid = ANY($2::text[]::xid8[]) ORDER BY id LIMIT $3
        """), [.int8(number), .array(PostgresArray(taken)), .int8(Self.transactionMax)])
    for row in writesRead {
      let transaction = try row.text(1)
      guard let kind = CapturedWrite.Kind(rawValue: try row.text(3)) else { continue }
      var write = CapturedWrite(
        transaction: transaction, table: try row.text(2), kind: kind,
        key: try row.array(4, of: String.self))
      if kind != .delete {
        write.names = try row.array(5, of: String.self).compactMap(\.self)
        write.values = try row.array(6, of: String.self)
      }
      if kind == .update { write.former = try row.array(7, of: String.self) }
      found.read[transaction] = try row.int8(0)
      writes.append((places[transaction] ?? 0, write))
    }
    // Stable: the writes of a transaction stay in their order.
    found.writes = taken.indices.flatMap { place in
      writes.filter { $0.place == place }.map(\.write)
    }
    return found
  }

  /// Removes writes that the space has.
  func remove(_ read: [String: Int64], _ connection: PostgresConnection) throws {
    guard !read.isEmpty else { return }
    let pairs = read.sorted { $0.key < $1.key }
    _ = try connection.query(
      .once(
        """
        DELETE FROM ferry_mirror.captured c USING unnest($2::text[]::xid8[], $3::bigint[]) r(xid, id)
        WHERE c.mirror = $1 AND c.xid = r.xid AND c.id <= r.id
        """),
      [
        .int8(number), .array(PostgresArray(pairs.map { Optional($0.key) })),
        .array(PostgresArray(pairs.map { Optional($0.value) })),
      ])
  }

  // MARK: Deferred rows

  func hasDeferred(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.deferred WHERE mirror = $1 LIMIT 1"), [.int8(number)]
    ).isEmpty
  }

  /// Rows that are tried again at once.
  static let deferredMax: Int64 = 1_000

  /// Returns deferred rows, the oldest first.
  func deferred(_ connection: PostgresConnection) throws -> [DeferredRow] {
    try connection.query(
      .once(
        """
        SELECT tab, key, reason FROM ferry_mirror.deferred WHERE mirror = $1
        ORDER BY at, tab, key LIMIT $2
        """), [.int8(number), .int8(Self.deferredMax)]
    ).map { row in
      DeferredRow(
        table: try row.text(0), key: try row.array(1, of: String.self), reason: try row.text(2))
    }
  }

  /// Notes why a row cannot be in its table.
  func `defer`(
    _ table: Name, _ key: [String?], _ reason: String, _ connection: PostgresConnection
  ) throws {
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.deferred(mirror, tab, key, reason) VALUES ($1, $2, $3, $4)
        ON CONFLICT (mirror, tab, key) DO UPDATE SET reason = excluded.reason, at = now()
        """),
      [.int8(number), .text(table.text), .array(PostgresArray(key)), .text(reason)])
  }

  func settle(_ table: Name, _ key: [String?], _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("DELETE FROM ferry_mirror.deferred WHERE mirror = $1 AND tab = $2 AND key = $3"),
      [.int8(number), .text(table.text), .array(PostgresArray(key))])
  }

  // MARK: The place

  /// Notes what the tables have after a step, in the step's transaction.
  func note(turn: Int64, applied: Int64, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.mirrors SET turn = $2, applied = $3, at = now() WHERE number = $1
        """), [.int8(number), .int8(turn), .int8(applied)])
  }
}

/// A row that its table in PostgreSQL cannot hold.
package struct DeferredRow: Sendable, Equatable {
  package var table: String
  package var key: [String?]
  package var reason: String
}
