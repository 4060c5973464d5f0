import FerryPostgres

/// The slot of a mirror, from which the server keeps the log. All calls block, outside of a
/// transaction.
extension MirrorLog {
  // MARK: Making

  /// Creates the slot if it is missing or lost, outside of a transaction.
  static func makeSlot(_ mirror: Int64, _ connection: PostgresConnection) throws -> MirrorLog? {
    guard let log = try MirrorLog(mirror, connection) else { return nil }
    if try log.slotState(connection)?.isUsable == true { return log }
    return try log.alone(connection) { log in
      if try log.slotState(connection)?.isUsable != true { try log.replaceSlot(connection) }
      return try MirrorLog(mirror, connection)
    }
  }

  /// The first number of the advisory lock of a session that changes a group's slot; the second one is
  /// the group's.
  private static let slotLock = 7_310_595

  /// Runs `body` with the log as it is then, outside of a transaction. No other mirror of a group
  /// changes the slot meanwhile.
  func alone<Value>(
    _ connection: PostgresConnection, _ body: (MirrorLog) throws -> Value
  ) throws -> Value {
    guard isOfGroup else { return try body(self) }
    let lock: PostgresParameters = [.int8(Int64(Self.slotLock)), .int8(-number)]
    _ = try connection.query(.once("SELECT pg_advisory_lock($1::int4, $2::int4)"), lock)
    defer {
      // The end of a broken connection releases it as well.
      _ = try? connection.query(.once("SELECT pg_advisory_unlock($1::int4, $2::int4)"), lock)
    }
    guard let present = try MirrorLog(mirror, connection) else { throw Self.removed }
    return try body(present)
  }

  /// Begins a new slot at the present end of the log, in place of the former one. Writes before it
  /// are missing.
  func replaceSlot(_ connection: PostgresConnection) throws {
    try release(connection)
    let made = try createSlot(connection)
    let found = try connection.query(
      .once(
        "UPDATE ferry_mirror.logs SET lsn = $2::text::pg_lsn WHERE mirror = $1 RETURNING mirror"),
      [.int8(number), .text(made ?? "0/0")])
    if !found.isEmpty { return }
    try dropSlot(connection)
    throw Self.removed
  }

  private static let removed = MirrorFault(description: "the mirror was removed meanwhile")

  /// Drops the slot, so PostgreSQL keeps no log for the mirror. All rows are compared with the next
  /// slot.
  func release(_ connection: PostgresConnection) throws {
    // First the gap: a kill between the steps leaves a comparison to make. The place may be another
    // server's.
    let found = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.logs SET gaps = gaps + 1, source = '', lsn = '0/0' WHERE mirror = $1
        RETURNING mirror
        """), [.int8(number)])
    // A slot without an entry would keep the log for ever.
    if found.isEmpty { throw Self.removed }
    try dropSlot(connection)
  }

  /// PostgreSQL creates a slot behind all present transactions of the server, and would wait for
  /// them without an end.
  private static let slotWaitMax = "30s"

  /// Returns the slot's position.
  private func createSlot(_ connection: PostgresConnection) throws -> String? {
    let set = PostgresStatement.once("SELECT set_config('statement_timeout', $1, false)")
    let former =
      try connection.query(.once("SELECT current_setting('statement_timeout')")).first?.text(0)
    _ = try connection.query(set, [.text(Self.slotWaitMax)])
    do {
      let made = try connection.query(
        .once("SELECT lsn::text FROM pg_create_logical_replication_slot($1, 'pgoutput')"),
        [.text(slot)])
      _ = try connection.query(set, [.text(former ?? "0")])
      return try made.first?.text(0)
    } catch {
      guard error.kind == .server else { throw error }
      _ = try connection.query(set, [.text(former ?? "0")])
      guard error.sqlState == "57014" else { throw error }
      throw PostgresError(
        .server,
        "a transaction on the server lasts too long, and a reader of the log begins behind it; try "
          + "again when it has ended",
        sqlState: error.sqlState)
    }
  }

  // MARK: Looking

  /// The state of a slot.
  struct SlotState: Sendable, Equatable {
    var isUsable: Bool
    var isActive: Bool
    /// The kept log, in bytes.
    var retained: Int64
    /// True if the server keeps the log without a limit.
    var isUnlimited: Bool
    /// True if the kept log is within the server's limits.
    var isSafe: Bool
  }

  /// Returns the state of the slot; `nil` if it is missing.
  func slotState(_ connection: PostgresConnection) throws -> SlotState? {
    try connection.query(
      .once(
        """
        SELECT coalesce(wal_status, 'lost') <> 'lost' AND plugin = 'pgoutput'
            AND database = current_database(), active,
          coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn), 0)::bigint,
          current_setting('max_slot_wal_keep_size') = '-1',
          coalesce(wal_status IN ('reserved', 'extended'), false)
        FROM pg_catalog.pg_replication_slots WHERE slot_name = $1
        """), [.text(slot)]
    ).first.map {
      SlotState(
        isUsable: try $0.bool(0), isActive: try $0.bool(1), retained: try $0.int8(2),
        isUnlimited: try $0.bool(3), isSafe: try $0.bool(4))
    }
  }

  /// Returns the log kept for a mirror; `nil` if triggers capture.
  ///
  /// - Parameter isStopped: whether the mirror has stopped itself: then it needs no log.
  static func kept(
    _ number: Int64, isStopped: Bool, _ connection: PostgresConnection
  ) throws -> Mirror.KeptLog? {
    guard let log = try MirrorLog(number, connection) else { return nil }
    let state = try log.slotState(connection)
    if state == nil, isStopped {
      return Mirror.KeptLog(bytes: 0, isUnlimited: false, isSafe: true)
    }
    guard let state, state.isUsable else {
      return Mirror.KeptLog(bytes: nil, isUnlimited: false, isSafe: false)
    }
    return Mirror.KeptLog(
      bytes: state.retained, isUnlimited: state.isUnlimited, isSafe: state.isSafe)
  }

  // MARK: Dropping

  /// Attempts to drop a slot that a connection still reads, and the wait for the end of it.
  private static let dropsMax = 5
  private static let readerWaitMax = Duration.seconds(1)

  /// Drops the slot, outside of a transaction. A connection of a former process may still read it:
  /// it ends.
  func dropSlot(_ connection: PostgresConnection) throws {
    for attempt in 1... {
      do {
        _ = try connection.query(
          .once(
            """
            SELECT pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
            WHERE slot_name = $1 AND database = current_database()
            """), [.text(slot)])
        return
      } catch {
        guard error.isOfReadSlot else { throw error }
        guard attempt < Self.dropsMax else {
          throw PostgresError(
            .server, "\(error.message); end this connection of the server, and try again",
            sqlState: error.sqlState)
        }
      }
      try endReader(connection)
    }
  }

  /// Ends the connection that reads the slot. Without the right to, it waits for the end.
  private func endReader(_ connection: PostgresConnection) throws {
    let wait = Int64(Self.readerWaitMax / .milliseconds(1))
    do {
      _ = try connection.query(
        .once(
          """
          SELECT pg_terminate_backend(active_pid, $2) FROM pg_catalog.pg_replication_slots
          WHERE slot_name = $1 AND database = current_database() AND active_pid IS NOT NULL
          """), [.text(slot), .int8(wait)])
    } catch {
      guard error.isAboutRights else { throw error }
      _ = try connection.query(.once("SELECT pg_sleep($1::bigint / 1000.0)"), [.int8(wait)])
    }
  }
}

extension PostgresError {
  /// True if a connection reads a slot.
  var isOfReadSlot: Bool { kind == .server && sqlState == "55006" }
  /// True if a slot or a publication is missing.
  var isMissingObject: Bool { kind == .server && sqlState == "42704" }
}
