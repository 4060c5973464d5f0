import FerryPostgres
import FerryProtocol
import Foundation

/// The statements to make a batch durable, each for any number of rows at once.
///
/// New rows take the space from its own row: so Citus sends the whole statement to the worker of
/// the space. If the space were a parameter, the coordinator would compute and copy the rows.
struct PostgresIngestWrites {
  let space: Int64
  let now: Int64

  /// Adds the operations and notices.
  func add(history effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    if !effects.operations.isEmpty { addOperations(effects.operations, to: &pipeline) }
    if !effects.notices.isEmpty { addNotices(effects.notices, to: &pipeline) }
  }

  /// Adds the records.
  func add(records effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    addRecords(effects.records.filter(\.isNew), Self.newRecords, to: &pipeline)
    addRecords(effects.records.filter { !$0.isNew }, Self.records, to: &pipeline)
  }

  func add(_ effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    add(history: effects, to: &pipeline)
    add(records: effects, to: &pipeline)
    if !effects.owners.isEmpty { addOwners(effects.owners, to: &pipeline) }
    if !effects.chains.isEmpty { addChains(effects.chains, to: &pipeline) }
    addBuffered(effects, to: &pipeline)
    if !effects.claims.isEmpty { PostgresClaims.add(effects.claims, in: space, to: &pipeline) }
    PostgresColumns.add(effects.columns, in: space, to: &pipeline)
    var state: PostgresParameters = [
      .int8(space), .int8(effects.space.head),
      .int8(Int64(bitPattern: effects.space.clock.rawValue)),
    ]
    if let newest = effects.space.newest {
      state.append(uuidBytes: newest.value.bytes)
    } else {
      state.append(.uuid(nil))
    }
    state.append(.int8(Int64(bitPattern: effects.space.historyHash)))
    state.append(effects.space.timeline)
    pipeline.add(Self.space, state)
    PostgresTimelines.add(effects.space, in: space, to: &pipeline)
    PostgresUsage.add(effects, in: space, to: &pipeline)
  }

  private static let space = PostgresStatement(
    "space_save",
    """
    UPDATE spaces SET head = $2, clock = $3, newest = $4, history_hash = $5, timeline = $6
    WHERE id = $1
    """)

  private static let operations = PostgresStatement(
    "operations_save",
    """
    INSERT INTO operations(space, id, sequence, device, tbl, record, kind, "time", base, data,
      times, outcome, history_hash, marks, former)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::bytea[],
      $7::smallint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[],
      $13::bigint[], $14::text[], $15::text[]) AS u
    WHERE s.id = $1
    """)

  private func addOperations(
    _ rows: [IngestEffects.OperationRow], to pipeline: inout PostgresPipeline
  ) {
    let count = rows.count
    var ids = PostgresArray<UUID>(reserving: count, valueBytes: count * 16)
    var sequences = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    var devices = PostgresArray<UUID>(reserving: count, valueBytes: count * 16)
    var tables = PostgresArray<String>(reserving: count, valueBytes: count * 16)
    var records = PostgresArray<[UInt8]>(reserving: count, valueBytes: count * 17)
    var kinds = PostgresArray<Int16>(reserving: count, valueBytes: count * 2)
    var times = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    var bases = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    let dataBytes = rows.reduce(count * 16) { $0 + ($1.data?.count ?? 0) }
    var data = PostgresArray<String>(reserving: count, valueBytes: dataBytes)
    var columnTimes = PostgresArray<String>(reserving: count)
    var outcomes = PostgresArray<String>(reserving: count)
    var historyHashes = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    var marks = PostgresArray<String>(reserving: count)
    let formerBytes = rows.reduce(0) { $0 + ($1.former?.count ?? 0) }
    var former = PostgresArray<String>(reserving: count, valueBytes: formerBytes)
    for row in rows {
      ids.append(high: row.id.value.high, low: row.id.value.low)
      sequences.append(row.sequence)
      devices.append(high: row.device.value.high, low: row.device.value.low)
      tables.append(utf8: row.key.table.utf8)
      records.append(record: row.key.record)
      kinds.append(row.kind.storedCode)
      times.append(Int64(bitPattern: row.time.rawValue))
      bases.append(row.base)
      data.append(utf8OrNull: row.data)
      columnTimes.append(utf8OrNull: row.times)
      outcomes.append(utf8OrNull: row.outcome)
      historyHashes.append(Int64(bitPattern: row.historyHash))
      marks.append(utf8OrNull: row.marks)
      former.append(utf8OrNull: row.former)
    }
    pipeline.add(
      Self.operations,
      [
        .int8(space), .array(ids), .array(sequences), .array(devices), .array(tables),
        .array(records), .array(kinds), .array(times), .array(bases), .array(data),
        .array(columnTimes), .array(outcomes), .array(historyHashes), .array(marks),
        .array(former),
      ])
  }

  private static let newRecords = PostgresStatement(
    "records_new",
    """
    INSERT INTO records(space, tbl, record, sequence, whole_below, state, dead)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[],
      $7::boolean[]) AS u
    WHERE s.id = $1
    """)

  private static let records = PostgresStatement(
    "records_save",
    """
    INSERT INTO records(space, tbl, record, sequence, whole_below, state, dead)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[],
      $7::boolean[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, tbl, record) DO UPDATE SET sequence = excluded.sequence,
      whole_below = excluded.whole_below, state = excluded.state, dead = excluded.dead
    """)

  private func addRecords(
    _ rows: [IngestEffects.RecordRow], _ statement: PostgresStatement,
    to pipeline: inout PostgresPipeline
  ) {
    if rows.isEmpty { return }
    let count = rows.count
    var tables = PostgresArray<String>(reserving: count, valueBytes: count * 16)
    var records = PostgresArray<[UInt8]>(reserving: count, valueBytes: count * 17)
    var sequences = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    var wholes = PostgresArray<Int64>(reserving: count, valueBytes: count * 8)
    let stateBytes = rows.reduce(0) { $0 + $1.state.count }
    var states = PostgresArray<[UInt8]>(reserving: count, valueBytes: stateBytes)
    var dead = PostgresArray<Bool>(reserving: count, valueBytes: count)
    for row in rows {
      tables.append(utf8: row.key.table.utf8)
      records.append(record: row.key.record)
      sequences.append(row.sequence)
      wholes.append(row.wholeBelow)
      row.state.withUnsafeBytes { states.append(bytes: $0) }
      dead.append(row.isDead)
    }
    pipeline.add(
      statement,
      [
        .int8(space), .array(tables), .array(records), .array(sequences), .array(wholes),
        .array(states), .array(dead),
      ])
  }

  private static let chains = PostgresStatement(
    "chains_save",
    """
    INSERT INTO devices(space, device, tail, recent, operations, seen_at)
    SELECT s.id, u.*, $6 FROM spaces AS s
    CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bytea[], $5::bigint[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, device) DO UPDATE SET tail = excluded.tail, recent = excluded.recent,
      operations = excluded.operations,
      seen_at = greatest(devices.seen_at, excluded.seen_at)
    """)

  /// A name does not go to another owner.
  private static let owners = PostgresStatement(
    "owners_save",
    """
    INSERT INTO devices(space, device, principal, seen_at)
    SELECT s.id, u.*, $4 FROM spaces AS s
    CROSS JOIN unnest($2::uuid[], $3::text[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, device) DO UPDATE SET principal = excluded.principal, name = NULL
    """)

  private func addOwners(_ owners: [DeviceID: Principal], to pipeline: inout PostgresPipeline) {
    var devices = PostgresArray<UUID>()
    var principals = PostgresArray<String>()
    for (device, principal) in owners {
      devices.append(high: device.value.high, low: device.value.low)
      principals.append(utf8: principal.id.utf8)
    }
    pipeline.add(
      Self.owners, [.int8(space), .array(devices), .array(principals), .int8(now)])
  }

  private func addChains(
    _ chains: [DeviceID: DeviceChain], to pipeline: inout PostgresPipeline
  ) {
    var devices = PostgresArray<UUID>()
    var tails = PostgresArray<UUID>()
    var recent = PostgresArray<[UInt8]>()
    var operations = PostgresArray<Int64>()
    for (device, chain) in chains {
      devices.append(high: device.value.high, low: device.value.low)
      tails.append(high: chain.tail.value.high, low: chain.tail.value.low)
      recent.append(bytes: chain.recentBytes)
      operations.append(chain.operations)
    }
    pipeline.add(
      Self.chains,
      [
        .int8(space), .array(devices), .array(tails), .array(recent), .array(operations),
        .int8(now),
      ])
  }

  private static let unbuffer = PostgresStatement(
    "unbuffer", "DELETE FROM buffered WHERE space = $1 AND device = $2 AND tail = $3")

  private static let buffer = PostgresStatement(
    "buffer",
    """
    INSERT INTO buffered(space, device, tail, dependency, continues, bytes, body, role,
      arrived_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    """)

  private func addBuffered(_ effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    for key in effects.unbuffered {
      var parameters: PostgresParameters = [.int8(space)]
      parameters.append(uuidBytes: key.device.value.bytes)
      parameters.append(uuidBytes: key.tail.value.bytes)
      pipeline.add(Self.unbuffer, parameters)
    }
    for row in effects.buffered {
      var parameters: PostgresParameters = [.int8(space)]
      parameters.append(uuidBytes: row.packet.key.device.value.bytes)
      parameters.append(uuidBytes: row.packet.key.tail.value.bytes)
      if let dependency = row.packet.dependency {
        parameters.append(uuidBytes: dependency.value.bytes)
      } else {
        parameters.append(.uuid(nil))
      }
      parameters.append(.bool(row.packet.continues))
      parameters.append(.int8(Int64(row.packet.byteCount)))
      parameters.append(bytes: row.body)
      parameters.append(.text(row.packet.role.rawValue))
      parameters.append(.int8(now))
      pipeline.add(Self.buffer, parameters)
    }
  }
}

extension PostgresArray<String> {
  /// Appends text already in UTF-8, or NULL.
  fileprivate mutating func append(utf8OrNull text: [UInt8]?) {
    if let text { append(utf8: text) } else { appendNull() }
  }
}
