import FerryProtocol

/// A device as a space knows it.
struct KnownDevice {
  let device: DeviceID
  let owner: Principal
  /// `nil` if nothing of it was applied yet.
  let chain: DeviceChain?
  let name: DeviceName?

  init(_ device: DeviceID, _ row: any PlainRow) throws {
    self.device = device
    owner = Principal(try row.text(0)) ?? .anonymous
    let tail = row.isNull(1) ? nil : try row.uniqueID(1)
    let (operations, isTrimmed) = (try row.integer(3), try row.flag(4))
    chain = try tail.map { tail in
      try row.bytes(2).withUnsafeBytes {
        DeviceChain(
          tail: OperationID(tail), recentBytes: $0, operations: operations, isTrimmed: isTrimmed)
      }
    }
    name = DeviceName(stored: try row.optionalText(5))
  }
}

/// Look-ups of a batch of packets, in both stores.
enum IngestQueries {
  /// The rows of ``KnownDevice``.
  static let devices = PlainBatch.find("chains", [.init("device", .uuid)]) { key in
    """
    SELECT d.principal, d.tail, d.recent, d.operations, d.trimmed, d.name FROM devices AS d
    WHERE d.space = $1 AND d.device = \(key("device"))
    """
  }

  static let usage = PlainBatch.find("usage", [.init("principal", .text)]) { key in
    """
    SELECT \(Usage.columns) FROM usage AS u
    WHERE u.space = $1 AND u.principal = \(key("principal"))
    """
  }

  static let columns = PlainBatch.find(
    "columns", [.init("tbl", .text), .init("name", .text)]
  ) { key in
    """
    SELECT 1 FROM table_columns AS c
    WHERE c.space = $1 AND c.tbl = \(key("tbl")) AND c.name = \(key("name"))
    """
  }

  /// The number of columns that count.
  fileprivate static let columnCounts = PlainBatch.find(
    "columns_count", [.init("tbl", .text)]
  ) { key in
    """
    SELECT count(*) FROM table_columns AS c
    WHERE c.space = $1 AND c.tbl = \(key("tbl")) AND NOT c.declared
    """
  }

  fileprivate static let claims = PlainBatch.find(
    "claims", [.init("tbl", .text), .init("key_columns", .text), .init("value", .text)]
  ) { key in
    """
    SELECT u.record FROM unique_keys AS u
    WHERE u.space = $1 AND u.tbl = \(key("tbl")) AND u.key_columns = \(key("key_columns"))
      AND u.value = \(key("value"))
    """
  }

  /// The waiting packets of devices, without the bodies.
  static let buffered = PlainBatch.find("buffered", [.init("device", .uuid)]) { key in
    """
    SELECT p.tail, p.dependency, p.continues, p.bytes, p.role, p.arrival FROM buffered AS p
    WHERE p.space = $1 AND p.device = \(key("device"))
    """
  }

  /// Operations of the history, with small outcomes and as many others as an answer may have.
  static let known = PlainBatch.bounded(
    "known", [.init("id", .uuid)], .total(small: KnownOperation.smallOutcome),
    columns: ["sequence", "device", "history_hash"], value: ("outcome", .text)
  ) { key in
    "FROM operations AS o WHERE o.space = $1 AND o.id = \(key("id"))"
  }

  /// The sizes of records, and their states as far as there is room.
  static let records = PlainBatch.bounded(
    "records", RecordQueries.key, .total(), value: ("state", .bytes), RecordQueries.find)

  /// The tables with records.
  static let present = PlainBatch.find("present", [.init("tbl", .text)]) { key in
    """
    SELECT 1 FROM records AS r WHERE r.space = $1 AND r.tbl = \(key("tbl"))
    ORDER BY r.record LIMIT 1
    """
  }

  /// The names of the space's tables: one look-up for each, whatever the number of records.
  static let tables = PlainStatement(
    "tables",
    """
    WITH RECURSIVE found(name) AS (
      SELECT (SELECT r.tbl FROM records AS r WHERE r.space = $1 ORDER BY r.tbl, r.record LIMIT 1)
      UNION ALL SELECT (
        SELECT r.tbl FROM records AS r WHERE r.space = $1 AND r.tbl > found.name
        ORDER BY r.tbl, r.record LIMIT 1) FROM found WHERE found.name IS NOT NULL)
    SELECT name FROM found WHERE name IS NOT NULL LIMIT $2
    """)

  /// The next records of a table after one of them.
  static let page = PlainScan(
    "table_page", ["record", "state"], large: "state", order: "record", parameters: 3,
    """
    FROM records WHERE space = $1 AND tbl = $2 AND record > $3 ORDER BY record LIMIT 2000
    """)

  /// The next records changed after a place.
  static let changed = PlainScan(
    "changed_records", ["sequence", "tbl", "record", "state"], large: "state", order: "sequence",
    parameters: 2,
    "FROM records WHERE space = $1 AND sequence > $2 ORDER BY sequence LIMIT 2000")

  fileprivate static let bodies = PlainBatch.find(
    "bodies", [.init("device", .uuid), .init("tail", .uuid)]
  ) { key in
    """
    SELECT p.body FROM buffered AS p
    WHERE p.space = $1 AND p.device = \(key("device")) AND p.tail = \(key("tail"))
    """
  }
}

/// The accounts whose use a batch changes; the total of the space is the last.
struct UsageNames {
  private let accounts: [Principal]

  init(_ incoming: [IncomingPacket]) {
    accounts = Set(incoming.map(\.principal.account) + [.anonymous]).sorted { $0.id < $1.id }
  }

  var keys: [[PlainValue]] { (accounts.map(\.id) + [Usage.total]).map { [.text($0)] } }

  /// Reads the row of the name at a place.
  func read(_ place: Int, _ row: any PlainRow, into context: inout IngestContext?) throws {
    var usage = Usage()
    usage.stored = try Usage.names.indices.map { try row.integer($0) }
    if place < accounts.count {
      context?.usage[accounts[place]] = usage
    } else {
      context?.total = usage
    }
  }
}

/// The columns written by packets, by table and name.
struct WrittenColumns {
  private let columns: [(table: Name, name: Name)]

  init(_ columns: [Name: Set<Name>]) {
    self.columns = columns.sorted { $0.key < $1.key }.flatMap { table, names in
      names.sorted().map { (table: table, name: $0) }
    }
  }

  var keys: [[PlainValue]] { columns.map { [.text($0.table.text), .text($0.name.text)] } }

  /// Loads the columns that are not among the found places.
  func load(
    besides found: [Int], in space: Int64, into context: inout IngestContext,
    on connection: any PlainConnection
  ) throws {
    let found = Set(found)
    var new: [Name: Set<Name>] = [:]
    for (place, column) in columns.enumerated() where !found.contains(place) {
      new[column.table, default: []].insert(column.name)
    }
    let tables = new.keys.sorted()
    let counts = try connection.rows(
      IngestQueries.columnCounts, [.integer(space)], of: tables.map { [.text($0.text)] }
    ) { place, row in (tables[place], Int(try row.integer(0))) }
    for (table, count) in counts {
      context.addNewColumns(new[table] ?? [], of: table, besides: count)
    }
  }
}

extension PlainConnection {
  /// Returns those devices that the space knows, in the order of `devices`.
  func known(_ devices: [DeviceID], in space: Int64) throws -> [KnownDevice] {
    try rows(
      IngestQueries.devices, [.integer(space)], of: devices.map { [.uuid($0.value)] }
    ) { place, row in try KnownDevice(devices[place], row) }
  }

  /// Returns the records with these unique keys; an unclaimed key is absent.
  func holders(of claims: [UniqueClaim], in space: Int64) throws -> [UniqueClaim: Name] {
    let found = try rows(IngestQueries.claims, [.integer(space)], of: claims.map(\.values)) {
      place, row in (claims[place], Name(try row.text(0)))
    }
    return Dictionary(found) { first, _ in first }
  }

  /// Returns buffered packets, which must be there.
  func bodies(of keys: [BufferedKey], in space: Int64) throws -> [BufferedKey: Packet] {
    let values: [[PlainValue]] = keys.map { [.uuid($0.device.value), .uuid($0.tail.value)] }
    let found = try rows(IngestQueries.bodies, [.integer(space)], of: values) { place, row in
      (keys[place], try Packet(decoding: try row.bytes(0), limits: .stored))
    }
    guard found.count == keys.count else {
      throw StoreError.failed("a buffered packet is missing")
    }
    return Dictionary(found) { first, _ in first }
  }
}
