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
    pipeline.add(IngestEffects.writes(effects.notices, in: space))
  }

  /// Adds the records.
  func add(records effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    addRecords(effects.records.filter(\.isNew), Self.newRecords, to: &pipeline)
    addRecords(effects.records.filter { !$0.isNew }, Self.records, to: &pipeline)
  }

  func add(_ effects: IngestEffects, to pipeline: inout PostgresPipeline) {
    add(history: effects, to: &pipeline)
    add(records: effects, to: &pipeline)
    pipeline.add(effects.frame(in: space, now: now))
  }

  private static let operations = PostgresStatement(
    "operations_save",
    """
    INSERT INTO operations(space, id, sequence, device, tbl, record, kind, "time", base, data,
      times, outcome, history_hash, marks, former, ordinal)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::bytea[],
      $7::smallint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[],
      $13::bigint[], $14::text[], $15::text[], $16::integer[]) AS u
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
    var ordinals = PostgresArray<Int32>(reserving: count, valueBytes: count * 4)
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
      ordinals.append(row.ordinal)
    }
    pipeline.add(
      Self.operations,
      [
        .int8(space), .array(ids), .array(sequences), .array(devices), .array(tables),
        .array(records), .array(kinds), .array(times), .array(bases), .array(data),
        .array(columnTimes), .array(outcomes), .array(historyHashes), .array(marks),
        .array(former), .array(ordinals),
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
}

extension PostgresArray<String> {
  /// Appends text already in UTF-8, or NULL.
  fileprivate mutating func append(utf8OrNull text: [UInt8]?) {
    if let text { append(utf8: text) } else { appendNull() }
  }
}
