import FerryConformance
import FerryMirror
import FerryPostgres
import FerryProtocol
import FerrySQLite

// The state of a mirror, for the world and the oracles.
extension SimulatedMirror {
  /// Returns the work left to drain; `nil` if there is none.
  func left(in file: SQLiteConnection?) -> String? {
    guard let plan, let connection = try? connected(), let file else {
      return "it has no tables yet"
    }
    do {
      if longTransaction != nil { return "a program holds a row" }
      let captured = try count("captured", connection)
      if captured > 0 { return "\(captured) writes of programs are captured" }
      let adopting = try count("adopted", where: "NOT t.done", connection)
      if adopting > 0 { return "rows of \(adopting) tables are not adopted" }
      for table in plan.tables
      where try file.exists("SELECT 1 FROM \(quoted(Name("mirror.changed.\(table.name)")))") {
        return "rows of \(table.name) are not in PostgreSQL"
      }
      return nil
    } catch {
      return "its tables cannot be read: \(error)"
    }
  }

  /// Returns both sides.
  func evidence(in file: SQLiteConnection) throws -> MirrorSidesEvidence {
    var evidence = MirrorSidesEvidence()
    (evidence.made, evidence.taken, evidence.rejected) = (made, taken, rejected)
    (evidence.balances, evidence.removed, evidence.hasRules) = (balances, removed, hasRules)
    (evidence.tokens, evidence.hasOrders) = (tokens, hasOrders)
    evidence.device = try? ReplicaEvidence.readProgress(file).device
    let connection = try connected()
    evidence.deferred = try listed("deferred", connection)
    evidence.unsent = try listed("unsent", connection)
    let refused = try file.rows("SELECT tbl, record FROM ferry_quarantine") {
      RecordKey(table: $0.name(0), record: $0.name(1))
    }
    evidence.rejected.formUnion(refused)
    for table in try presentPlan(file)?.tables ?? [] {
      try read(table, connection, file, into: &evidence)
    }
    return evidence
  }

  /// Returns the plan for the space's schema in the file: the mirror may have followed changes of the
  /// tables since it began.
  private func presentPlan(_ file: SQLiteConnection) throws -> MirrorPlan? {
    let document = try file.first(
      "SELECT document FROM ferry_schemas WHERE version = (SELECT schema FROM ferry_replica)"
    ) { $0.text(0) }
    guard plan != nil, let document else { return plan }
    return try configuration.plan(try SpaceSchema(json: document))
  }

  /// Counts the mirror's entries in a table `t` of the ledger.
  func count(
    _ table: String, where condition: String = "true", _ connection: PostgresConnection
  ) throws -> Int64 {
    try connection.query(
      .once(
        """
        SELECT count(*) FROM ferry_mirror.\(table) t JOIN ferry_mirror.mirrors m ON m.number = t.mirror
        WHERE m.name = $1 AND \(condition)
        """), [.text(name)]
    ).first?.int8(0) ?? 0
  }

  /// Returns the records listed by the mirror in a table of the ledger.
  private func listed(
    _ table: String, _ connection: PostgresConnection
  ) throws -> Set<RecordKey> {
    let rows = try connection.query(
      .once(
        """
        SELECT t.tab, t.key[1] FROM ferry_mirror.\(table) t
        JOIN ferry_mirror.mirrors m ON m.number = t.mirror WHERE m.name = $1
        """), [.text(name)])
    return Set(
      try rows.map { RecordKey(table: Name(try $0.text(0)), record: Name(try $0.text(1))) })
  }

  private func read(
    _ table: MirrorTable, _ connection: PostgresConnection, _ file: SQLiteConnection,
    into evidence: inout MirrorSidesEvidence
  ) throws {
    let columns = table.columns.map(\.name)
    let texts = columns.map { "\(quoted($0))::text" }
    for row in try connection.query(
      .once(
        "SELECT \((["id::text"] + texts).joined(separator: ", ")) FROM \(quoted(Name(name))).\(quoted(table.name))"
      ))
    {
      var values: [Name: String?] = [:]
      for (place, column) in columns.enumerated() {
        values[column] = row.isNull(place + 1) ? .some(nil) : try row.text(place + 1)
      }
      evidence.tables[RecordKey(table: table.name, record: Name(try row.text(0)))] = values
    }
    let list = (["id"] + columns.map { quoted($0) }).joined(separator: ", ")
    let kinds = table.columns.map(\.affinity)
    let rows = try file.rows("SELECT \(list) FROM \(quoted(table.name))") { row in
      (row.name(0), columns.indices.map { row.value(Int32($0 + 1)) })
    }
    for (id, values) in rows {
      let key = RecordKey(table: table.name, record: id)
      var texts: [Name: String?] = [:]
      for (place, value) in values.enumerated() {
        switch (value, kinds[place]) {
        case (.null, _): texts[columns[place]] = .some(nil)
        case (.integer(let number), .integer): texts[columns[place]] = String(number)
        case (.text(let text), .text) where !text.utf8.contains(0): texts[columns[place]] = text
        default: evidence.unfit.insert(key)
        }
      }
      evidence.replica[key] = texts
    }
  }
}
