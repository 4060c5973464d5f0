import FerryProtocol
import FerrySyncServer
import FerryTestSupport

extension StoreContract {
  static let names = [
    StoreContract(
      "random names of tables, records and columns and random values compare by their bytes"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        var model: [RecordKey: [Name: Value]] = [:]
        for seed in UInt64(1)...60 {
          var samples = NameSamples(seed: seed)
          let table = samples.tableName()
          var operations: [SyncOperation] = []
          for _ in 0..<6 {
            let key = RecordKey(table: table, record: Name(samples.name()))
            if model[key] != nil { continue }
            let row = samples.row()
            model[key] = row
            operations.append(author.insert(key, row))
          }
          try await deliver(author.packet(operations), to: space)
        }
        try require(try await space.everything().records, is: model, "the records")
        // Updates find the records they name, and no lookalikes.
        for (index, key) in model.keys.sorted().enumerated() where index % 3 == 0 {
          let column = Name("n\(index)")
          model[key]?[column] = .integer(Int64(index))
          let update = author.operation(
            .update, key.record.text, [Column(column, .integer(Int64(index)))],
            table: key.table.text)
          try await deliver(author.packet([update]), to: space)
        }
        try require(try await space.everything().records, is: model, "the records after updates")
        try await requireDigests(of: model, in: space)
      }
    },
    StoreContract("a random batch matches by bytes") { under in
      try await under.withSpace { space in
        var author = Author(1)
        var samples = NameSamples(seed: 4_711)
        var rows: [Name: [Name: Value]] = [:]
        let column: Name = "\u{212A}\"\u{301}"
        for text in NameSamples.texts {
          rows[Name("r\(rows.count)")] = [column: .text(text), "K\"\u{301}": .text(samples.text())]
        }
        try await deliver(
          author.packet(
            rows.sorted { $0.key < $1.key }.map {
              author.insert(RecordKey(table: "tasks", record: $0.key), $0.value)
            }), to: space)
        for text in NameSamples.texts.shuffled(with: &samples).prefix(20) {
          var batch = author.operation(.batch, "", [Column("hit", .text(text))])
          let predicate = RecordPredicate.compare(.column(column), .equal, .text(text))
          batch.batch = Batch(.set, where: predicate)
          try await deliver(author.packet([batch]), to: space)
          for (record, row) in rows where row[column] == .text(text) {
            rows[record]?["hit"] = .text(text)
          }
        }
        let model = Dictionary(
          uniqueKeysWithValues: rows.map { (RecordKey(table: "tasks", record: $0.key), $0.value) })
        try require(try await space.everything().records, is: model, "the records")
      }
    },
    StoreContract("random schemas and unique keys compare by bytes") { under in
      try await under.withSpace { space in
        var author = Author(1)
        var schema = SpaceSchema()
        var tables: [(table: Name, column: Name)] = []
        for seed in UInt64(1)...25 {
          var samples = NameSamples(seed: seed &+ 500)
          let (table, column) = (samples.tableName(), Name(samples.name()))
          if schema.tables[table] != nil { continue }
          tables.append((table, column))
          schema.tables[table] = TableRules(
            columns: [column: ColumnRules(policy: .max)], unique: [[column]])
        }
        let applied = try await space.apply(String(decoding: schema.encoded(), as: UTF8.self)).get()
        try require(applied.tables, is: schema.tables, "the tables of the schema")
        try require(
          try await space.store.schema(of: space.space.id), is: applied, "the schema that is kept")
        let values = Set(NameSamples.texts.map { Value.text($0) })
        for (table, column) in tables {
          let inserts = values.enumerated().map { index, value in
            author.insert(RecordKey(table: table, record: Name("r\(index)")), [column: value])
          }
          try await deliver(author.packet(inserts), to: space)
          var rival = Author(UInt64(2 + (tables.firstIndex { $0.table == table } ?? 0)))
          rival.base = try await space.head()
          let twice = try unwrap(inserts.first, "no values")
          let copy = rival.insert(
            RecordKey(table: table, record: "copy"), [column: twice.columns[0].value])
          let problem = try await space.send(rival.packet([copy])).problem
          try require(
            problem?.refusals.map(\.holder), is: [twice.key.record], "who holds \(twice.columns)")
        }
      }
    },
    StoreContract("forbidden names are refused, and reserved ones are refused with their operation")
    {
      under in
      try await under.withSpace { space in
        for (index, name) in NameSamples.reserved.enumerated() {
          var author = Author(UInt64(10 + index))
          let packet = author.packet([
            author.insert(RecordKey(table: Name(name), record: "r"), ["v": 1])
          ])
          let problem = try await space.send(packet).problem
          try require(
            problem?.refusals.map(\.code), is: [.reservedTable], "what is refused of \(name)")
        }
        for name in NameSamples.forbidden {
          var author = Author(1)
          let key = RecordKey(table: "t", record: "r")
          for packet in [
            author.packet([author.insert(RecordKey(table: Name(name), record: "r"), ["v": 1])]),
            author.packet([author.insert(key, [Name(name): 1])]),
          ] {
            let decoded = try? Packet(decoding: packet.encoded(), limits: .standard)
            try require(decoded, is: nil, "a packet with the name \(name.debugDescription)")
          }
        }
        try require(try await space.head(), is: 0, "the head")
      }
    },
  ]
}

/// Sends a packet as it travels; it must be applied.
private func deliver(_ packet: Packet, to space: SpaceUnderTest) async throws {
  let decoded = try Packet(decoding: packet.encoded(), limits: .standard)
  try require(decoded, is: packet, "a packet that was read back")
  try require(try await space.receipt(for: decoded).status, is: .applied, "a packet")
}

/// Folds all, and requires the tables' digests to be those of the model, in the order of bytes.
private func requireDigests(
  of model: [RecordKey: [Name: Value]], in space: SpaceUnderTest
) async throws {
  let head = try await space.head()
  while try await space.store.foldDigests(in: space.space.id) < head {}
  var hasher = RecordHasher()
  var sums: [Name: DigestSums] = [:]
  for (key, row) in model {
    let digest = hasher.digest(of: key, row.map { Column($0.key, $0.value) })
    sums[key.table, default: DigestSums()].add(digest, to: DigestNode.leaf(of: key.record))
  }
  let wanted = sums.sorted { $0.key < $1.key }.map { name, sums in
    DigestAnswer.TableDigest(table: name, records: sums.recordCount, digest: sums[.root])
  }
  let query = DigestQuery(cursor: Cursor(epoch: space.space.epoch, applied: head))
  let answer = try await space.store.digests(in: space.space.id, query).get()
  try require(answer.content, is: .tables(wanted), "the digests")
}

extension Author {
  fileprivate mutating func insert(_ key: RecordKey, _ row: [Name: Value]) -> SyncOperation {
    operation(
      .insert, key.record.text, row.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) },
      table: key.table.text)
  }
}

extension NameSamples {
  fileprivate mutating func tableName() -> Name {
    while true {
      let name = Name(name())
      if !NameRule.isReserved(table: name) { return name }
    }
  }

  fileprivate mutating func row() -> [Name: Value] {
    var row: [Name: Value] = [:]
    for _ in 0...below(5) {
      row[Name(name())] = below(4) == 0 ? .blob(Array(text().utf8)) : .text(text())
    }
    return row
  }
}

extension [String] {
  fileprivate func shuffled(with samples: inout NameSamples) -> [String] {
    var shuffled = self
    for index in indices.dropFirst() { shuffled.swapAt(index, samples.below(index + 1)) }
    return shuffled
  }
}
