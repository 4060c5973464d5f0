import FerryPostgres
import FerryProtocol

/// The statements to delete the rows below a space's retention horizon. Deleting waits for no
/// writer, and no writer waits for it.
struct PostgresPruning {
  let space: Int64

  /// Permits one of several servers to prune a space at a time. The number is Ferry's own.
  private static let claim = PostgresStatement(
    "prune_claim",
    """
    SELECT pg_try_advisory_xact_lock(738094593, hashint8($1)), retention_horizon,
      (SELECT sequence FROM operations WHERE space = $1 AND space + 0 = $1 AND $2
        ORDER BY sequence LIMIT 1)
    FROM spaces WHERE id = $1
    """)

  private static let operations = PostgresStatement(
    "prune_operations",
    """
    DELETE FROM operations
    WHERE space = $1 AND space + 0 = $1 AND sequence >= $2 AND sequence < $3
    """)

  // Goes by the rows' own addresses, one look-up each: no index is cheaper, whatever the
  // statistics. Rows locked by a writer are left for the next time; other rows are locked until
  // they are deleted. A record deleted before it was folded would stay in the sums: they begin from
  // scratch.

  private static let tombstones = PostgresStatement(
    "prune_tombstones",
    """
    WITH gone AS (
      DELETE FROM records AS r USING (
        SELECT ctid AS place FROM records
        WHERE space = $1 AND dead AND sequence <= $2 ORDER BY sequence LIMIT $3
        FOR UPDATE SKIP LOCKED
      ) AS old WHERE r.space = $1 AND r.ctid = old.place RETURNING r.sequence
    ), lost AS (
      UPDATE digest_states SET sequence = -1
      WHERE space = $1 AND sequence >= 0 AND sequence < (SELECT max(sequence) FROM gone)
    ) SELECT count(*) FROM gone
    """)

  private static let notices = PostgresStatement(
    "prune_notices",
    """
    DELETE FROM notices AS n USING (
      SELECT ctid AS place FROM notices WHERE space = $1 AND space + 0 = $1 AND sequence <= $2
      ORDER BY sequence LIMIT $3
    ) AS old WHERE n.space = $1 AND n.ctid = old.place
    """)

  private static let buffered = PostgresStatement(
    "prune_buffered",
    """
    WITH gone AS (
      DELETE FROM buffered AS b USING (
        SELECT ctid AS place FROM buffered WHERE space = $1 AND arrived_at <= $2 LIMIT $3
      ) AS old WHERE b.space = $1 AND b.ctid = old.place RETURNING b.device, b.bytes
    ), owned AS (
      SELECT \(Principal.accountSQL(of: "d.principal")) AS account, g.bytes
      FROM gone AS g JOIN devices AS d ON d.space = $1 AND d.device = g.device
    ), counted AS (
      SELECT account, count(*) AS packets, sum(bytes)::bigint AS bytes FROM owned GROUP BY account
      UNION ALL SELECT '', count(*), sum(bytes)::bigint FROM owned HAVING count(*) > 0
    ), credited AS (
      UPDATE usage SET packets = greatest(0, usage.packets - counted.packets),
        packet_bytes = greatest(0, usage.packet_bytes - counted.bytes)
      FROM counted WHERE usage.space = $1 AND usage.principal = counted.account
    ) SELECT count(*) FROM gone
    """)

  /// Leaves only the last tails of chains without any write for long.
  private static let trim = PostgresStatement(
    "trim_chains",
    """
    WITH trimmed AS (
      UPDATE devices AS d SET trimmed = true,
        recent = substring(d.recent FROM (octet_length(d.recent) - $4 + 1)::integer)
      FROM (
        SELECT ctid AS place FROM devices
        WHERE space = $1 AND seen_at <= $2 AND octet_length(recent) > $4 LIMIT $3
      ) AS old WHERE d.space = $1 AND d.ctid = old.place
      RETURNING 1
    ) SELECT count(*) FROM trimmed
    """)

  private static let forgetDevices = PostgresStatement(
    "forget_devices",
    """
    WITH gone AS (
      DELETE FROM devices AS d USING (
        SELECT ctid AS place FROM devices AS v
        WHERE v.space = $1 AND v.seen_at <= $2 AND NOT EXISTS (
          SELECT 1 FROM buffered AS p WHERE p.space = $1 AND p.device = v.device) LIMIT $3
      ) AS old WHERE d.space = $1 AND d.ctid = old.place RETURNING d.principal
    ), counted AS (
      SELECT \(Principal.accountSQL(of: "principal")) AS account, count(*) AS devices
      FROM gone GROUP BY account
      UNION ALL SELECT '', count(*) FROM gone HAVING count(*) > 0
    ), credited AS (
      UPDATE usage SET devices = greatest(0, usage.devices - counted.devices)
      FROM counted WHERE usage.space = $1 AND usage.principal = counted.account
    ) SELECT count(*) FROM gone
    """)

  func prune(_ slice: PruneSlice, on connection: PostgresConnection) throws -> PruneStep {
    try connection.transaction { connection in
      let found = try connection.query(
        Self.claim, [.int8(space), .bool(slice.after == nil)])
      guard let row = found.first else {
        throw StoreError.spaceGone
      }
      guard try row.bool(0) else { return .busy }
      var work = PruneWork(
        slice, retentionHorizon: try row.int8(1), first: try row.ifPresent(2))
      if !work.operations.isEmpty {
        work.rows.operations = try delete(
          Self.operations, work.operations.lowerBound, work.operations.upperBound, on: connection)
      }
      if work.room > 0 {
        let limits: PostgresParameters = [
          .int8(space), .int8(work.retentionHorizon), .int8(work.room),
        ]
        let counts = try connection.query(Self.tombstones, limits)
        work.rows.tombstones = Int(try counts[0].int8(0))
        work.rows.notices = try delete(
          Self.notices, work.retentionHorizon, work.room, on: connection)
      }
      if work.reachesDevices { try pruneDevices(slice, &work, on: connection) }
      return work.step
    }
  }

  private func delete(
    _ statement: PostgresStatement, _ second: Int64, _ third: Int64,
    on connection: PostgresConnection
  ) throws -> Int {
    try connection.query(statement, [.int8(space), .int8(second), .int8(third)]).affected
  }

  /// Runs under the space's lock: a writer may be about to apply a buffered packet, or to follow a
  /// chain.
  private func pruneDevices(
    _ slice: PruneSlice, _ work: inout PruneWork, on connection: PostgresConnection
  ) throws {
    let found = try connection.pipeline { pipeline in
      pipeline.add(PostgresConnection.spaceLock, [.int8(space)])
      pipeline.add(
        Self.buffered,
        [.int8(space), .int8(slice.bufferedBefore), .int8(Int64(PruneWork.bufferedRows))])
      guard work.forgetsDevices else { return }
      let room = PostgresValue.int8(Int64(PruneWork.deviceRows))
      pipeline.add(Self.forgetDevices, [.int8(space), .int8(slice.devicesBefore), room])
      pipeline.add(
        Self.trim,
        [
          .int8(space), .int8(slice.chainsBefore), room,
          .int8(Int64(DeviceChain.trimmedCount * 16)),
        ])
    }
    let counts = try found.dropFirst().map { Int(try $0[0].int8(0)) }
    (work.rows.buffered, work.rows.devices) = (counts[0], counts.dropFirst().reduce(0, +))
  }
}
