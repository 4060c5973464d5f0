import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// Columns of a file that SQLite cannot keep apart, or cannot have.
@Suite("Names in files to import", .hangLimit)
struct ImportNameTests {
  private func survey(
    _ text: String, _ format: ImportFormat = .csv, key: Name? = "id", generated: Name? = nil
  ) throws -> ImportSurvey {
    var survey = ImportSurvey(key: key, generated: generated)
    try Array(text.utf8).withUnsafeBytes { bytes in
      try ImportReader(format: format).read(bytes) { row, _ in try survey.add(row) }
    }
    return survey
  }

  @Test(
    "columns that SQLite treats as one are refused with both names",
    arguments: [
      ("id,SKU,sku\n1,a,b\n", ImportFormat.csv), ("id,ID\n1,2\n", .csv),
      (#"[{"id":"1","Sku":1},{"id":"2","sKU":1}]"#, .json),
    ])
  func cases(text: String, format: ImportFormat) {
    let error = #expect(throws: ImportError.self) { try survey(text, format) }
    #expect(error?.reason.contains("SQLite treats both as one column") == true)
  }

  @Test("a generated key replaces its column, and another spelling of the column is refused")
  func generated() throws {
    #expect(throws: ImportError.self) { try survey("ID,a\n1,2\n", key: nil, generated: "id") }
    #expect(try survey("id,a\n1,2\n", key: nil, generated: "id").rows == 1)
  }

  @Test("columns that only look alike are two columns")
  func lookalikes() throws {
    let survey = try survey("id,K,\u{212A},\u{E9},e\u{301},\u{C9}\n1,a,b,c,d,e\n")
    #expect(survey.columns == ["K", "\u{212A}", "\u{E9}", "e\u{301}", "\u{C9}"])
  }

  @Test("invalid names of columns are refused", arguments: NameSamples.forbidden.dropFirst())
  func forbidden(name: String) throws {
    var survey = ImportSurvey(key: "id")
    #expect(throws: ImportError.self) {
      try survey.add([Column("id", "1"), Column(name, 1)])
    }
    #expect(throws: ImportError.self) { try survey.add([Column("id", "a\u{0}b")]) }
  }
}
