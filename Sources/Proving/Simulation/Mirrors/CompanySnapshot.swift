import FerryConformance
import FerryPostgres
import FerryProtocol

/// The rows of a mirror's tables at one moment, as far as oracles follow programs' writes.
struct CompanySnapshot {
  /// Rows with texts as keys.
  private(set) var records: Set<RecordKey> = []
  /// The amounts of the accounts of programs.
  private(set) var accounts: [RecordKey: Int64] = [:]
  /// The tokens of numbered rows.
  private(set) var tokens: Set<String> = []

  /// - Parameter name: the mirror's name, and the schema of the tables.
  init(_ connection: PostgresConnection, of tables: [Name], name: String) throws {
    for table in tables {
      let target = "\(quoted(Name(name))).\(quoted(table))"
      if Workload.numbered.contains(table) {
        for row in try connection.query(.once("SELECT token FROM \(target)")) {
          tokens.insert(try row.text(0))
        }
        continue
      }
      for row in try connection.query(.once("SELECT id FROM \(target)")) {
        records.insert(RecordKey(table: table, record: Name(try row.text(0))))
      }
    }
    let (table, column) = Workload.counter
    let sql = "SELECT id, \(quoted(column)) FROM \(quoted(Name(name))).\(quoted(table))"
    for row in try connection.query(.once(sql)) {
      let key = RecordKey(table: table, record: Name(try row.text(0)))
      if Workload.isAccount(key, of: name) { accounts[key] = try row.int8(1) }
    }
  }
}
