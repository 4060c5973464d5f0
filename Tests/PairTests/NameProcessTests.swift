import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Easily confused names and values, through the programs. A file is imported, sent, pulled into a
/// table made from the pulled columns, and compared with the server.
@Suite(.hangLimit)
struct NameProcessTests {
  private struct Sample {
    var table: String
    var columns: [String] = []
    var rows: [[String]] = []

    init(seed: UInt64) {
      var samples = NameSamples(seed: seed)
      repeat {
        table = samples.name()
        // Words with a dash at the start are options; no table begins like Ferry's or SQLite's.
      } while table.hasPrefix("-")
        || ["ferry_", "sqlite_"].contains { table.asciiFolded.hasPrefix($0) }
      var taken: Set<Name> = ["id"]
      for _ in 0..<4 {
        let column = samples.name()
        if taken.insert(Name(column.asciiFolded)).inserted { columns.append(column) }
      }
      var records: Set<Name> = []
      for _ in 0..<6 {
        let record = samples.name()
        guard records.insert(Name(record)).inserted else { continue }
        rows.append([record] + columns.map { _ in samples.text() })
      }
    }

    /// Returns hand-written JSON: a dictionary would take lookalikes for one member.
    func json() throws -> String {
      func literal(_ text: String) throws -> String {
        String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
      }
      let objects = try rows.map { row in
        let members = try zip(["id"] + columns, row).map { try "\(literal($0)):\(literal($1))" }
        return "{\(members.joined(separator: ","))}"
      }
      return "[\(objects.joined(separator: ",\n"))]"
    }

    var query: String {
      let list = (["id"] + columns).map { "\"\($0.utf8Doubled)\"" }.joined(separator: ", ")
      return "SELECT \(list) FROM \"\(table.utf8Doubled)\" ORDER BY id"
    }
  }

  @Test(
    "a table imported on one device is created, equal and verified on another",
    arguments: StoreKind.allCases)
  func travels(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    for seed in UInt64(1)...6 {
      let sample = Sample(seed: seed)
      let one = try Device()
      let file = one.directory.file("rows.json")
      try Data(try sample.json().utf8).write(to: file)
      try await one.ferry("import", sample.table, file.path)
      try await one.ferry("init", "--server", server.url, "--space", "s\(seed)")
      try await one.ferry("sync")
      let two = try Device()
      try await two.ferry("init", "--server", server.url, "--space", "s\(seed)")
      try await two.ferry("sync")
      try await two.ferry("track", "--create", sample.table)
      try await two.ferry("sync")
      let rows = try await one.rows(sample.query)
      #expect(rows.count == sample.rows.count, "seed \(seed)")
      #expect(try await two.rows(sample.query) == rows, "seed \(seed)")
      for device in [one, two] { try await device.ferry("verify") }
    }
  }
}

extension String {
  /// As SQLite compares names of columns.
  fileprivate var asciiFolded: String {
    String(decoding: utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// With each quotation mark doubled, by bytes.
  fileprivate var utf8Doubled: String {
    String(decoding: utf8.flatMap { $0 == 0x22 ? [$0, $0] : [$0] }, as: UTF8.self)
  }
}
