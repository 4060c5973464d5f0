import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Easily confused names and values, through a device: tables made from pulled columns, rows,
/// recorded writes, predicates and comparisons. A model that knows only bytes decides.
@Suite("Random names on a device", .hangLimit)
struct NameFuzzTests {
  /// The content of one table in one space.
  private struct Sample {
    var table: Name
    var key: Name
    var columns: [Name]
    var rows: [Name: [Name: Value]] = [:]

    init(seed: UInt64) {
      var samples = NameSamples(seed: seed)
      repeat {
        table = Name(samples.name())
      } while NameRule.isReserved(table: table) || table.folded == "tasks"
      key = Name(samples.name())
      var names: Set<Name> = []
      for _ in 0...samples.below(6) { names.insert(Name(samples.name())) }
      columns = names.sorted()
      for _ in 0..<6 {
        var row: [Name: Value] = [:]
        for column in columns where samples.below(4) > 0 { row[column] = Self.value(&samples) }
        rows[Name(samples.name())] = row
      }
    }

    static func value(_ samples: inout NameSamples) -> Value {
      switch samples.below(5) {
      case 0: .integer(Int64(samples.below(3)))
      case 1: .blob(Array(samples.text().utf8))
      default: .text(samples.text())
      }
    }

    /// The possible columns of a table in SQLite: of each spelling the first.
    var shown: [Name] {
      var spellings: Set<Name> = []
      return columns.filter { column in
        rows.values.contains { $0[column] != nil } && spellings.insert(column.folded).inserted
      }
    }

    var hasKeyColumn: Bool {
      columns.contains { column in
        column.folded == key.folded && rows.values.contains { $0[column] != nil }
      }
    }
  }

  private let maker = PageMaker()

  private func changes(_ sample: Sample) -> [Change] {
    sample.rows.sorted { $0.key < $1.key }.enumerated().map { index, row in
      let columns = row.value.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
      return maker.change(Int64(index + 1), sample.table, row.key, columns)
    }
  }

  @Test("every name and value is used by its bytes", arguments: UInt64(1)...300)
  func device(seed: UInt64) throws {
    let sample = Sample(seed: seed)
    let replica = try ReplicaFixture.withTasks()
    let changes = changes(sample)
    let count = Int64(changes.count)
    try replica.apply(changes + [maker.change(count + 1, "tasks", "other", [Column("done", 1)])])
    #expect(try replica.rows("SELECT id, done FROM tasks") == [["other", 1]])
    let before = try replica.rows("SELECT * FROM ferry_replica")
    if sample.hasKeyColumn {
      #expect(throws: ReplicaError.self) {
        try replica.file.track([sample.table], creatingKey: sample.key)
      }
      #expect(try replica.file.tables.tracked.names() == ["tasks"])
      return
    }
    try replica.file.track([sample.table], creatingKey: sample.key)
    #expect(try replica.rows("SELECT * FROM ferry_replica") == before)
    let schema = try replica.file.tables.schema(of: sample.table)
    #expect(schema.name == sample.table && schema.key == sample.key)
    #expect(schema.columns.map(\.name) == sample.shown)
    try checkTables(replica, sample)
    try checkRows(replica, sample)
    try checkDigests(replica, sample, changes)
    try checkPredicates(replica, sample, seed)
    try checkWrites(replica, sample, seed)
  }

  private func checkTables(_ replica: ReplicaFixture, _ sample: Sample) throws {
    let names = try replica.rows(
      """
      SELECT name FROM sqlite_schema WHERE type = 'table'
        AND name NOT LIKE 'ferry\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
      """)
    #expect(Set(names) == [["tasks"], [.text(sample.table.text)]])
  }

  private func checkRows(_ replica: ReplicaFixture, _ sample: Sample) throws {
    let list = ([sample.key] + sample.shown).map(quoted).joined(separator: ", ")
    let rows = try replica.rows("SELECT \(list) FROM \(quoted(sample.table))")
    #expect(rows.count == sample.rows.count)
    for row in rows {
      guard case .text(let record) = row[0], let model = sample.rows[Name(record)] else {
        Issue.record("a row \(row) that nobody wrote")
        continue
      }
      #expect(Array(row.dropFirst()) == sample.shown.map { model[$0] ?? .null })
    }
    // A value without a column here waits, whole.
    let hidden = Set(sample.columns).subtracting(sample.shown)
    let expected = sample.rows.mapValues { row in row.filter { hidden.contains($0.key) } }
      .filter { !$0.value.isEmpty }
    let waiting = try replica.file.waiting.oldest(100).map { change in
      (
        change.key.record,
        Dictionary(uniqueKeysWithValues: change.columns.map { ($0.name, $0.value) })
      )
    }
    #expect(Dictionary(uniqueKeysWithValues: waiting) == expected)
  }

  private func checkDigests(
    _ replica: ReplicaFixture, _ sample: Sample, _ changes: [Change]
  ) throws {
    let scan = try TableScan(sample.table, on: replica.file.connection, limits: .standard)
    for change in changes {
      let here = try #require(try scan.received(change.key))
      #expect(scan.comparison.differing(here: here, there: change.state.columns).isEmpty)
    }
    var sums = DigestSums()
    var hasher = RecordHasher()
    for change in changes {
      let digest = try #require(Digest(of: change.key, change.state, with: &hasher))
      sums.add(digest, to: DigestNode.leaf(of: change.key.record))
    }
    #expect(try scan.sums { _ in } == sums)
  }

  private func checkPredicates(
    _ replica: ReplicaFixture, _ sample: Sample, _ seed: UInt64
  ) throws {
    var samples = NameSamples(seed: seed &+ 1_000_000)
    for _ in 0..<4 {
      let column = sample.shown.isEmpty ? nil : sample.shown[samples.below(sample.shown.count)]
      let field: PredicateField = column.map { .column($0) } ?? .record
      let values =
        sample.rows.keys.map { Value.text($0.text) } + sample.rows.values.flatMap(\.values)
      let value = values[samples.below(values.count)]
      let comparison: PredicateComparison = samples.below(2) == 0 ? .equal : .less
      let predicate = RecordPredicate.compare(field, comparison, value)
      let text = predicate.text(key: sample.key)
      #expect(try RecordPredicate(text, key: sample.key) == predicate, "\(text)")
      let sql = predicate.sql(table: sample.table, key: sample.key)
      let found = try replica.file.write {
        try $0.query(
          "SELECT \(quoted(sample.key)) FROM \(quoted(sample.table)) WHERE \(sql.text)", sql.values)
      }
      let matching = sample.rows.filter { row in
        predicate.matches(
          record: row.key, columns: row.value.map { Column($0.key, $0.value) })
      }
      let expected = Set(matching.keys.map { Value.text($0.text) })
      #expect(Set(found.flatMap(\.values)) == expected, "\(text)")
    }
  }

  /// Checks that a user's writes are recorded with the same bytes, and that batches find their
  /// columns.
  private func checkWrites(_ replica: ReplicaFixture, _ sample: Sample, _ seed: UInt64) throws {
    var samples = NameSamples(seed: seed &+ 2_000_000)
    let records = sample.rows.keys.sorted()
    let key = RecordKey(table: sample.table, record: records[samples.below(records.count)])
    var expected: [SyncOperation.Kept] = []
    let table = quoted(sample.table)
    if !sample.shown.isEmpty {
      let column = sample.shown[samples.below(sample.shown.count)]
      let value = Value.real(0.25)
      try replica.run(
        "UPDATE \(table) SET \(quoted(column)) = ? WHERE \(quoted(sample.key)) = ?",
        [value, .text(key.record.text)])
      expected.append(SyncOperation.Kept(key, [Column(column, value)]))
      try replica.file.write {
        _ = try $0.batch(
          sample.table, where: .compare(.record, .equal, .text(key.record.text)),
          set: [column: 0.5])
      }
      expected.append(
        SyncOperation.Kept(RecordKey(table: sample.table, record: ""), [Column(column, 0.5)]))
      let shown = try replica.file.rows.value(of: column, in: key)
      #expect(shown == 0.5)
    }
    try replica.run(
      "DELETE FROM \(table) WHERE \(quoted(sample.key)) = ?", [.text(key.record.text)])
    let pending = try replica.pending
    #expect(pending.dropLast().map { SyncOperation.Kept($0.key, $0.columns) } == expected)
    #expect(pending.last?.kind == .delete && pending.last?.key == key)
    for packet in try replica.freeze() {
      #expect(try Packet(decoding: packet.encoded(), limits: .standard) == packet)
    }
    try replica.file.tracking.untrack(sample.table)
    #expect(try replica.file.tables.tracked.names() == ["tasks"])
  }

  @Test(
    "tables of Ferry and of SQLite are neither tracked nor created, in any case",
    arguments: NameSamples.reserved + NameSamples.forbidden)
  func reserved(name: String) throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, Name(name), "a", [Column("v", 1)]),
      maker.change(2, "tasks", "other", [Column("done", 1)]),
    ])
    #expect(try replica.rows("SELECT id FROM tasks") == [["other"]])
    #expect(throws: ReplicaError.self) {
      try replica.file.track([Name(name)], creatingKey: "id")
    }
    #expect(try replica.file.tables.tracked.names() == ["tasks"])
  }
}

extension SyncOperation {
  /// The compared part of a recorded operation.
  fileprivate struct Kept: Equatable {
    let key: RecordKey
    let columns: [Column]

    init(_ key: RecordKey, _ columns: [Column]) { (self.key, self.columns) = (key, columns) }
  }
}
