import FerryPostgres
import FerryProtocol

/// The use of a space by principals, read and written with the packets that change it.
enum PostgresUsage {
  private static let find = PostgresStatement(
    "usage",
    """
    SELECT found.* FROM unnest($2::text[]) AS wanted(principal) CROSS JOIN LATERAL (
      SELECT u.principal, \(Usage.columns) FROM usage AS u
      WHERE u.space = $1 AND u.principal = wanted.principal OFFSET 0
    ) AS found
    """)

  private static let save = PostgresStatement(
    "usage_save",
    """
    INSERT INTO usage(space, principal, \(Usage.columns))
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
      $7::bigint[], $8::bigint[], $9::bigint[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, principal) DO UPDATE SET bytes = excluded.bytes,
      records = excluded.records, devices = excluded.devices, packets = excluded.packets,
      packet_bytes = excluded.packet_bytes, day = excluded.day, written = excluded.written
    """)

  // MARK: Packets

  static func addLookUp(
    of principals: [Principal], in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    var names = PostgresArray<String>()
    for name in Set(principals + [.anonymous]) { names.append(utf8: name.id.utf8) }
    names.append(utf8: Usage.total.utf8)
    pipeline.add(find, [.int8(space), .array(names)])
  }

  static func readUsage(_ rows: PostgresRows, into context: inout IngestContext) throws {
    for row in rows {
      let usage = try Usage(row)
      if let principal = Principal(try row.text(0)) {
        context.usage[principal] = usage
      } else {
        context.total = usage
      }
    }
  }

  static func add(
    _ effects: IngestEffects, in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    var rows = effects.usage.map { ($0.key.id, $0.value) }
    if let total = effects.total { rows.append((Usage.total, total)) }
    if rows.isEmpty { return }
    var principals = PostgresArray<String>()
    var numbers = Array(repeating: PostgresArray<Int64>(), count: 7)
    for (name, usage) in rows {
      principals.append(utf8: name.utf8)
      for (index, number) in usage.stored.enumerated() { numbers[index].append(number) }
    }
    var parameters: PostgresParameters = [.int8(space), .array(principals)]
    for array in numbers { parameters.append(.array(array)) }
    pipeline.add(save, parameters)
  }
}

extension Usage {
  fileprivate init(_ row: PostgresRow) throws {
    self.init()
    stored = try (1...7).map { try row.int8($0) }
  }
}
