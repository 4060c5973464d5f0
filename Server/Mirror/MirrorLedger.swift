import FerryPlatform
import FerryPostgres
import FerryProtocol

/// A mirror's own tables in PostgreSQL. All calls block.
package struct MirrorLedger: Sendable {
  /// Writes of one step; a larger transaction is one step up to ``transactionMax``.
  static let stepMax: Int64 = 20_000
  /// Writes of a transaction that reach the space together; a larger one is split. A device's
  /// transaction has at most 40,000 (``Limits/operationsPerTransaction``).
  var transactionMax: Int64 = 30_000
  /// Bytes of a step; a device's transaction has at most 12 MiB (``Limits/transactionBytes``).
  static let bytesMax: Int64 = 10 << 20

  let number: Int64

  /// The rows that the space lacks as their tables have them.
  var unsent: UnsentRows { UnsentRows(mirror: number) }

  init(number: Int64) { self.number = number }

  /// Returns the ledger of a mirror; `nil` if the database has none of the name.
  package init?(_ name: String, _ connection: PostgresConnection) throws {
    let ledger = try connection.query(
      .once("SELECT to_regclass('ferry_mirror.mirrors') IS NOT NULL")
    ).first?.bool(0)
    guard ledger == true else { return nil }
    let found = try connection.query(
      .once("SELECT number FROM ferry_mirror.mirrors WHERE name = $1"), [.text(name)])
    guard let number = try found.first?.int8(0) else { return nil }
    self.number = number
  }

  // MARK: Tables

  static let tables = """
    -- IF NOT EXISTS needs the right to create schemas even if there is one.
    DO 'BEGIN
      IF to_regnamespace(''ferry_mirror'') IS NULL THEN CREATE SCHEMA ferry_mirror; END IF;
    END';
    CREATE TABLE IF NOT EXISTS ferry_mirror.mirrors(
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE,
      space text NOT NULL,
      schema text NOT NULL,
      layout text NOT NULL DEFAULT '',      -- of the tables, as they were made
      file text NOT NULL DEFAULT '',        -- identifies the mirror's file
      turn bigint NOT NULL DEFAULT 0,       -- of the last step, or of the last writes taken, of the file
      applied bigint NOT NULL DEFAULT 0,    -- the sequence of the space that the tables have
      fault text NOT NULL DEFAULT '',       -- why the tables as they are cannot be read or written
      version bigint NOT NULL DEFAULT 0,    -- of the space's schema at the last try of unsent rows
      at timestamptz);
    CREATE TABLE IF NOT EXISTS ferry_mirror.captured(
      id bigint GENERATED ALWAYS AS IDENTITY,
      mirror bigint NOT NULL,
      xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      tab text NOT NULL,
      kind "char" NOT NULL,                 -- I, U, D, or K for another key; A answers a step,
                                            -- which has overwritten the amounts of E
      key text[] NOT NULL,
      names text[], vals text[], olds text[],
      reason text,                          -- of an answer: why PostgreSQL refuses the space's row
      tries bigint NOT NULL DEFAULT 0,      -- how often it has been put off
      -- One index: a second one costs programs as much as the row itself.
      PRIMARY KEY (mirror, xid, id));
    CREATE TABLE IF NOT EXISTS ferry_mirror.deferred(
      mirror bigint NOT NULL, tab text NOT NULL, key text[] NOT NULL,
      reason text NOT NULL,
      retry boolean NOT NULL,               -- false: no table can hold the key
      at timestamptz NOT NULL DEFAULT now());
    -- A key may be longer than another kind of index can hold.
    CREATE INDEX IF NOT EXISTS deferred_key ON ferry_mirror.deferred USING hash (key);
    CREATE TABLE IF NOT EXISTS ferry_mirror.unsent(  -- rows that the space lacks as they are
      mirror bigint NOT NULL, tab text NOT NULL, key text[] NOT NULL,
      reason text NOT NULL, retry boolean NOT NULL,
      gone boolean NOT NULL DEFAULT false,  -- a program has deleted it, and the space has it
      holder text[],                        -- the key of the record with its unique value
      answer text,                          -- the reason for devices, if PostgreSQL answered a step
      merges boolean NOT NULL DEFAULT true, -- false: the space may lack writes unknown to the file
      at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX IF NOT EXISTS unsent_key ON ferry_mirror.unsent USING hash (key);
    CREATE INDEX IF NOT EXISTS unsent_holder ON ferry_mirror.unsent USING hash (holder);
    CREATE TABLE IF NOT EXISTS ferry_mirror.recorded(  -- tables whose writes are captured
      mirror bigint NOT NULL, tab text NOT NULL,
      target text NOT NULL, function text NOT NULL, triggers bigint NOT NULL,
      columns text[] NOT NULL,
      shape text NOT NULL);                 -- the followed definition; empty if none is followed
    CREATE TABLE IF NOT EXISTS ferry_mirror.group_functions(  -- functions that capture for a group
      function text PRIMARY KEY, definition text NOT NULL);
    CREATE TABLE IF NOT EXISTS ferry_mirror.stops(  -- tables with a write that was not captured
      mirror bigint NOT NULL, tab text NOT NULL, reason text NOT NULL,
      definition boolean NOT NULL DEFAULT false,  -- the reason: a fitting one ends the stop
      at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE IF NOT EXISTS ferry_mirror.adopted(
      mirror bigint NOT NULL, tab text NOT NULL,
      place text[],                         -- the key with which the last slice ended
      last text[],                          -- the greatest key when the triggers were made
      rows bigint NOT NULL DEFAULT 0,       -- in the slices
      total bigint NOT NULL,                -- as estimated at the beginning
      done boolean NOT NULL DEFAULT false,
      former boolean NOT NULL DEFAULT false,  -- to compare with the rows of a removed mirror
      added text[],                         -- columns to compare since a change of the definition
      gap boolean NOT NULL DEFAULT false,   -- writes before that change may not be captured
      space_column text, space_value text,  -- of its rows, if others belong to other spaces
      PRIMARY KEY (mirror, tab));
    \(MirrorKeys.tables)
    \(MirrorLog.tables)
    \(MirrorPartitions.tables)
    \(MirrorViews.tables)
    \(CarriedType.makeFunction)
    """

  /// The channel on which PostgreSQL reports captured writes to an asleep mirror; the payload is the
  /// mirror's number.
  static let channel = "ferry_mirror"

  // MARK: Captured writes

  /// Reads whole transactions, so one comes after those whose writes it has seen. A transaction
  /// that saw another's write wrote later, and so has the greater last identifier.
  func captured(_ connection: PostgresConnection) throws -> CapturedWrites {
    let rows = try connection.query(
      .once(
        """
        SELECT xid::text, count(*), sum(320 + pg_column_size(vals))::bigint
        FROM ferry_mirror.captured WHERE mirror = $1
        GROUP BY xid ORDER BY max(id) LIMIT 1000
        """), [.int8(number)])
    var (taken, sizes): ([String], [Int64]) = ([], [])
    var (count, bytes): (Int64, Int64) = (0, 0)
    for row in rows {
      let (size, sizeBytes) = (try row.int8(1), try row.ifPresent(2, as: Int64.self) ?? 0)
      let isTooMuch = count + size > Self.stepMax || bytes + sizeBytes > Self.bytesMax
      if !taken.isEmpty, isTooMuch { break }
      taken.append(try row.text(0))
      sizes.append(size)
      (count, bytes) = (count + size, bytes + sizeBytes)
    }
    if taken.isEmpty { return CapturedWrites() }
    let places = Dictionary(uniqueKeysWithValues: zip(taken, taken.indices))
    // The writes of a transaction stay in their order.
    var writes = taken.map { _ in [CapturedWrite]() }
    let writesRead = try connection.query(
      .once(
        """
        SELECT id, xid::text, tab, kind::text, key, names, vals, olds, tries,
          (extract(epoch FROM at) * 1000)::bigint, reason FROM (
          SELECT *, sum(size) OVER (ORDER BY place, tries, id) - size AS before FROM (
            SELECT c.*, t.place, 320 + coalesce(octet_length(c.vals::text), 0) AS size
            FROM ferry_mirror.captured c
              JOIN unnest($2::text[]::xid8[]) WITH ORDINALITY t(xid, place) ON t.xid = c.xid
            WHERE c.mirror = $1 ORDER BY t.place, c.tries, c.id LIMIT $3) c) c
        WHERE before < $4 ORDER BY place, tries, id
        """),
      [
        .int8(number), .array(PostgresArray(taken)), .int8(transactionMax),
        // PostgreSQL keeps values compressed.
        .int8(Self.bytesMax),
      ])
    let now = try connection.query(
      .once("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    ).first?.int8(0)
    let readAt = ContinuousClock.now
    for row in writesRead {
      guard let write = try CapturedWrite(row, at: now ?? 0, readAt) else { continue }
      writes[places[write.transaction] ?? 0].append(write)
    }
    var found = CapturedWrites()
    for (writes, size) in zip(writes, sizes) {
      if writes.count < size {
        if found.writes.isEmpty { found = CapturedWrites(writes: writes, isPart: true) }
        break
      }
      found.writes += writes
    }
    return found
  }

  /// Removes writes contained in the space; delayed ones stay, behind the others of their
  /// transaction.
  func remove(
    _ read: ReadWrites, numbers: MirrorNumbers? = nil, _ connection: PostgresConnection
  ) throws {
    guard !read.isEmpty else { return }
    try connection.transaction { connection in
      let noted = try connection.query(
        .once(
          """
          UPDATE ferry_mirror.mirrors SET turn = greatest(turn, $2)
          WHERE number = $1 AND turn >= $3 RETURNING 1
          """), [.int8(number), .int8(read.turn), .int8(read.ended)])
      if noted.isEmpty { throw MirrorFault.restored }
      let marks: PostgresParameters = [
        .int8(number), .array(PostgresArray(read.marks.map { Optional($0.transaction) })),
        .array(PostgresArray(read.marks.map { Optional($0.tries) })),
        .array(PostgresArray(read.marks.map { Optional($0.id) })),
      ]
      if try !read.unsent.isEmpty || unsent.hasAny(connection) {
        try unsent.recordSent(read, marks, connection)
      }
      try postpone(read, connection)
      for (table, records) in read.dropped.sorted(by: { $0.key < $1.key }) {
        try numbers?.keys(table)?.forget(records, connection)
      }
      // The delayed ones are behind the marks now.
      _ = try connection.query(
        .once(
          """
          DELETE FROM ferry_mirror.captured c
          USING unnest($2::text[]::xid8[], $3::bigint[], $4::bigint[]) r(xid, tries, id)
          WHERE c.mirror = $1 AND c.xid = r.xid AND (c.tries, c.id) <= (r.tries, r.id)
          """), marks)
    }
  }

  private func postpone(_ read: ReadWrites, _ connection: PostgresConnection) throws {
    guard !read.later.isEmpty else { return }
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.captured c SET tries = r.tries + 1
        FROM unnest($2::text[]::xid8[], $3::bigint[]) r(xid, tries)
        WHERE c.mirror = $1 AND c.xid = r.xid AND c.tries <= r.tries
          AND c.id IN (SELECT unnest($4::bigint[]))
        """),
      [
        .int8(number), .array(PostgresArray(read.marks.map { Optional($0.transaction) })),
        .array(PostgresArray(read.marks.map { Optional($0.tries) })),
        .array(PostgresArray(read.later.map { Optional($0) })),
      ])
  }

  /// Returns the identifier of the newest captured write; 0 if there is none.
  func lastCaptured(_ connection: PostgresConnection) throws -> Int64 {
    try connection.query(
      .once("SELECT coalesce(max(id), 0) FROM ferry_mirror.captured WHERE mirror = $1"),
      [.int8(number)]
    ).first?.int8(0) ?? 0
  }

  func hasCaptured(through id: Int64, _ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.captured WHERE mirror = $1 AND id <= $2 LIMIT 1"),
      [.int8(number), .int8(id)]
    ).isEmpty
  }

  /// Waits until former writes to the locked rows are captured from the log, and orders the rows
  /// captured by the present transaction behind them.
  func awaitLog(_ reader: LogReader?, _ connection: PostgresConnection) throws {
    guard let reader else { return }
    try reader.catchUp(within: LogReader.lockLimit)
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.captured SET id = DEFAULT
        WHERE mirror = $1 AND xid = pg_current_xact_id() AND kind <> 'D'
        """), [.int8(number)])
  }

  /// Returns `true` if the present transaction has captured writes.
  func hasCapturedNow(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once(
        """
        SELECT FROM ferry_mirror.captured WHERE mirror = $1 AND xid = pg_current_xact_id() LIMIT 1
        """), [.int8(number)]
    ).isEmpty
  }

  // MARK: Deferred rows

  func hasDeferred(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.deferred WHERE mirror = $1 LIMIT 1"), [.int8(number)]
    ).isEmpty
  }

  /// Rows retried, or listed for people, at once.
  static let deferredMax: Int64 = 1_000

  /// Returns deferred rows, the oldest first.
  ///
  /// - Parameter canRetry: only those whose key is stored as it is.
  func deferred(
    _ connection: PostgresConnection, canRetry: Bool = false, limit: Int64 = Self.deferredMax
  ) throws -> [DeferredRow] {
    try connection.query(
      .once(
        """
        SELECT tab, key, reason FROM ferry_mirror.deferred WHERE mirror = $1 AND (retry OR NOT $3)
        ORDER BY at, tab, key LIMIT $2
        """), [.int8(number), .int8(limit), .bool(canRetry)]
    ).map { row in
      DeferredRow(
        table: try row.text(0), key: try row.array(1, of: String.self), reason: try row.text(2))
    }
  }

  /// Stores the reason for a row's absence from the table.
  ///
  /// - Parameter canRetry: whether the table could hold the key; else `key` only resembles it.
  func `defer`(
    _ table: Name, _ key: [String?], _ reason: String, canRetry: Bool,
    _ connection: PostgresConnection
  ) throws {
    try resolve(table, key, canRetry: canRetry, connection)
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.deferred(mirror, tab, key, reason, retry)
        VALUES ($1, $2, $3, $4, $5)
        """),
      [
        .int8(number), .text(table.text), .array(Self.storable(key)),
        // It may quote the row.
        .text(Self.storable(reason)), .bool(canRetry),
      ])
  }

  /// Stores the reasons of rows whose keys the tables could hold.
  func `defer`(_ rows: [DeferredRow], _ connection: PostgresConnection) throws {
    guard !rows.isEmpty else { return }
    let keys = RowKeys(rows.map { ($0.table, $0.key) })
    let reasons = PostgresArray(rows.map { Optional(Self.storable($0.reason)) })
    _ = try connection.pipeline {
      $0.add(
        .once(
          """
          DELETE FROM ferry_mirror.deferred d
          USING (SELECT tab, key::text[] FROM unnest($2::text[], $3::text[]) r(tab, key)) r
          WHERE d.mirror = $1 AND d.tab = r.tab AND d.key = r.key AND d.retry
          """), [.int8(number), .array(keys.tables), .array(keys.texts)])
      $0.add(
        .once(
          """
          INSERT INTO ferry_mirror.deferred(mirror, tab, key, reason, retry)
          SELECT $1, tab, key::text[], reason, true
          FROM unnest($2::text[], $3::text[], $4::text[]) r(tab, key, reason)
          """), [.int8(number), .array(keys.tables), .array(keys.texts), .array(reasons)])
    }
  }

  /// Returns a text of the space as PostgreSQL can hold it.
  static func storable(_ text: String) -> String {
    text.replacing(bytes: "\0", with: "\\u0000")
  }

  private static func storable(_ key: [String?]) -> PostgresArray<String> {
    PostgresArray(key.map { $0.map(storable) })
  }

  func resolve(
    _ table: Name, _ key: [String?], canRetry: Bool, _ connection: PostgresConnection
  ) throws {
    _ = try connection.query(
      .once(
        """
        DELETE FROM ferry_mirror.deferred WHERE mirror = $1 AND tab = $2 AND key = $3 AND retry = $4
        """),
      [.int8(number), .text(table.text), .array(Self.storable(key)), .bool(canRetry)])
  }

  // MARK: The place

  /// Stores the state of the tables after a step, in the step's transaction.
  ///
  /// - Parameter ended: the last step required in the tables before.
  func store(
    turn: Int64, after ended: Int64, applied: Int64, _ connection: PostgresConnection
  ) throws {
    let noted = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.mirrors SET turn = $2, applied = $3, at = now()
        WHERE number = $1 AND turn >= $4 RETURNING 1
        """), [.int8(number), .int8(turn), .int8(applied), .int8(ended)])
    guard noted.isEmpty else { return }
    throw MirrorFault.restored
  }

  /// Stores the last change of the space in the tables, without a step.
  ///
  /// - Parameter ended: the last step required in the tables before.
  func store(
    applied: SequenceNumber, after ended: Int64, _ connection: PostgresConnection
  ) throws {
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.mirrors SET applied = $2, at = now()
        WHERE number = $1 AND applied <> $2 AND turn >= $3
        """), [.int8(number), .int8(applied), .int8(ended)])
  }
}
