import FerryProtocol

// Single records of a space, in both stores.
extension SyncStore {
  /// Returns the whole state of these records as it is now, as an encoded page in the keys' order.
  /// A missing record is a delete at sequence 0. The page is closed at the bytes of a page, with
  /// one record at least; the caller asks for the other records again.
  package func records(
    _ keys: [RecordKey], in space: Int64, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    try await plain(.pulling) { [limits] connection in
      try connection.records(keys, in: space, byteLimit: limits.pageBytes, now: now)
    }
  }
}

extension PlainConnection {
  /// Returns the whole state of records, from one snapshot.
  func records(
    _ keys: [RecordKey], in space: Int64, byteLimit: Int, now: Int64
  ) throws -> Result<[UInt8], Problem> {
    var page = PageBuilder(records: keys.count, byteLimit: byteLimit)
    var found: (epoch: Epoch, head: SequenceNumber)?
    var next = 0
    var isFull = false
    func addAbsent(before end: Int) {
      while next < end, !isFull, page.hasRoomForRecord {
        page.addAbsent(keys[next])
        next += 1
      }
    }
    let steps: [PlainStep] = [
      .one(RecordQueries.space, [.integer(space)]) {
        found = (Epoch(UInt64(bitPattern: try $0.integer(0))), try $0.integer(1))
      },
      .many(
        RecordQueries.whole, [.integer(space), .integer(Int64(byteLimit))],
        of: keys.map(\.values)
      ) { place, row in
        addAbsent(before: place)
        isFull = isFull || next < place || row.isNull(3) || !page.hasRoomForRecord
        if isFull { return }
        if try !page.add(keys[place], row) { page.addAbsent(keys[place]) }
        next += 1
      },
    ]
    try snapshot { try perform(steps, ends: true) }
    guard let found else { return .failure(.spaceGone) }
    addAbsent(before: keys.count)
    return .success(page.finishRecords(epoch: found.epoch, head: found.head, now: now))
  }

  /// Passes the states of existing records to `show`, a few of them in memory at a time.
  func forEachState(
    of keys: [RecordKey], in space: Int64,
    _ show: (RecordKey, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var rest = keys
    while !rest.isEmpty {
      let asked = rest
      rest = []
      _ = try rows(
        RecordQueries.states, [.integer(space), .integer(Int64(RecordQueries.answerBytes))],
        of: asked.map(\.values)
      ) { place, row in
        if row.isNull(1) { return rest.append(asked[place]) }
        try row.bytes(1) { try show(asked[place], $0) }
      }
    }
  }
}

extension PageBuilder {
  /// Returns whether the record exists or has existed for a reader.
  fileprivate mutating func add(_ key: RecordKey, _ row: any PlainRow) throws -> Bool {
    let (sequence, wholeBelow) = (try row.integer(0), try row.integer(1))
    let table = Array(key.table.utf8)
    return try row.bytes(3) { state in
      try table.withUnsafeBytes { table in
        try add(
          sequence: sequence, table: table, record: StoredRecordName(key.record), state: state,
          wholeBelow: wholeBelow)
      }
    }
  }
}

extension RecordKey {
  /// The columns of a key of `records`.
  var values: [PlainValue] { [.text(table.text), .record(record)] }
}

enum RecordQueries {
  /// Bytes of states after which one answer of the database ends.
  fileprivate static let answerBytes = 4 << 20

  static let key: [PlainBatch.Column] = [.init("tbl", .text), .init("record", .bytes)]

  /// Continues a look-up of a record.
  static func find(_ key: PlainBatch.Key) -> String {
    "FROM records AS r WHERE r.space = $1 AND r.tbl = \(key("tbl")) AND r.record = \(key("record"))"
  }

  fileprivate static let space = PlainStatement(
    "records_space", "SELECT epoch, head FROM spaces WHERE id = $1")

  fileprivate static let whole = PlainBatch.bounded(
    "records_fetch", key, .page, columns: ["sequence", "whole_below"],
    value: ("state", .bytes), find)

  fileprivate static let states = PlainBatch.bounded(
    "states_slice", key, .page, value: ("state", .bytes), find)
}
