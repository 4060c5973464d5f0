import FerryPostgres
import FerryProtocol
import Foundation

/// One transaction's worth of operations and records, encoded as PostgreSQL takes them.
struct RawBatch: Sendable {
  private let space: Int64
  private let count: Int64
  private let operations: PostgresParameters
  private let records: PostgresParameters

  /// Creates the operations of `packet` with the places from `sequence` on.
  init(_ packet: Packet, space: Int64, sequence: SequenceNumber) {
    self.space = space
    count = Int64(packet.operations.count)
    var columns = RawColumns()
    for (offset, operation) in packet.operations.enumerated() {
      columns.append(operation, of: packet.device, at: sequence + Int64(offset))
    }
    operations = [
      .int8(space), .array(columns.ids), .array(columns.sequences), .uuid(packet.device.raw),
      .array(columns.tables), .array(columns.records), .array(columns.kinds),
      .array(columns.times), .array(columns.bases), .array(columns.data),
    ]
    records = [
      .int8(space), .array(columns.tables), .array(columns.records), .array(columns.sequences),
      .array(columns.states),
    ]
  }

  /// Commits it in one round trip.
  func commit(on connection: PostgresConnection) throws {
    try connection.transaction { connection in
      _ = try connection.pipeline { pipeline in
        pipeline.add(Self.counter, [.int8(space), .int8(count)])
        pipeline.add(Self.insertOperations, operations)
        pipeline.add(Self.upsertRecords, records)
        pipeline.commit()
      }
    }
  }

  private static let counter = PostgresStatement(
    "raw_counter", "UPDATE raw_spaces SET head = head + $2 WHERE id = $1 RETURNING head")

  private static let insertOperations = PostgresStatement(
    "raw_operations",
    """
    INSERT INTO raw_operations(
      space, id, sequence, device, tbl, record, kind, time, base, data)
    SELECT $1, id, sequence, $4, tbl, record, kind, time, base, data
    FROM unnest($2::uuid[], $3::bigint[], $5::text[], $6::text[], $7::smallint[], $8::bigint[],
      $9::bigint[], $10::text[]) AS new(id, sequence, tbl, record, kind, time, base, data)
    """)

  private static let upsertRecords = PostgresStatement(
    "raw_records",
    """
    INSERT INTO raw_records(space, tbl, record, sequence, whole_below, state)
    SELECT $1, tbl, record, sequence, sequence, state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[])
      AS new(tbl, record, sequence, state)
    ON CONFLICT (space, tbl, record) DO UPDATE
      SET sequence = excluded.sequence, whole_below = excluded.whole_below, state = excluded.state
    """)
}

/// The arrays of one batch.
private struct RawColumns {
  var ids = PostgresArray<UUID>()
  var sequences = PostgresArray<Int64>()
  var tables = PostgresArray<String>()
  var records = PostgresArray<String>()
  var kinds = PostgresArray<Int16>()
  var times = PostgresArray<Int64>()
  var bases = PostgresArray<Int64>()
  var data = PostgresArray<String>()
  var states = PostgresArray<String>()

  mutating func append(
    _ operation: FerryProtocol.SyncOperation, of device: DeviceID, at sequence: SequenceNumber
  ) {
    ids.append(high: operation.id.value.high, low: operation.id.value.low)
    sequences.append(sequence)
    tables.append(operation.key.table.text)
    records.append(operation.key.record.text)
    kinds.append(Int16(operation.kind == .insert ? 0 : 1))
    times.append(Int64(bitPattern: operation.time.rawValue))
    bases.append(operation.base)
    var json = JSONWriter(capacity: 256)
    json.columns(operation.columns)
    data.append(utf8: json.finish())
    var state = RecordState()
    let stamp = Stamp(time: operation.time, device: device)
    _ = state.merge(operation, stamp: stamp, sequence: sequence)
    states.append(utf8: state.encoded())
  }
}

extension DeviceID {
  fileprivate var raw: UUID {
    withUnsafeBytes(of: (value.high.bigEndian, value.low.bigEndian)) {
      UUID(uuid: $0.loadUnaligned(as: uuid_t.self))
    }
  }
}
