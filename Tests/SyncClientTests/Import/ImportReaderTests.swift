import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryPersistence

@Suite("Reading files to import", .hangLimit)
struct ImportReaderTests {
  private func rows(_ text: String, _ format: ImportFormat) throws -> [[Column]] {
    var rows: [[Column]] = []
    try Array(text.utf8).withUnsafeBytes { bytes in
      try ImportReader(format: format).read(bytes) { row, _ in rows.append(row) }
    }
    return rows
  }

  @Test("a JSON array, an object around one, and lines contain the same rows")
  func shapes() throws {
    let expected: [[Column]] = [
      [Column("a", 1), Column("b", "x")], [Column("a", nil), Column("b", 1.5)],
    ]
    let one = #"{"a":1,"b":"x"}"#
    let two = #"{"a":null,"b":1.5}"#
    #expect(try rows("[\(one),\(two)]", .json) == expected)
    #expect(try rows(#"{"about":"x","rows":[\#(one),\#(two)]}"#, .json) == expected)
    #expect(try rows("\(one)\n\n\(two)\n", .jsonl) == expected)
  }

  @Test("booleans become integers and nested values their JSON text")
  func nested() throws {
    #expect(
      try rows(#"[{"a":true,"b":[1,{"c":2}]}]"#, .json)
        == [[Column("a", 1), Column("b", #"[1,{"c":2}]"#)]])
  }

  @Test("CSV keeps quotes, commas and line breaks inside fields, and distinguishes NULL from empty")
  func csv() throws {
    let text = "id,name,note\r\n1,\"A, \"\"B\"\"\",\r\n2,\"\",\"x\ny\"\r\n"
    #expect(
      try rows(text, .csv) == [
        [Column("id", "1"), Column("name", "A, \"B\""), Column("note", nil)],
        [Column("id", "2"), Column("name", ""), Column("note", "x\ny")],
      ])
  }

  @Test(
    "a broken file is refused with the place of the fault",
    arguments: [
      ("id\n\"x", ImportFormat.csv, "record 2 has a quoted field without an end"),
      ("id,id\n", .csv, "names column id twice"), ("a,b\n1\n", .csv, "record 2 has 1 fields"),
      ("{\"a\":1}\nx\n", .jsonl, "line 2"), ("[1]", .json, "a row is an object"),
      ("{\"a\":1}", .json, "no array"), ("{\"a\":[],\"b\":[]}", .json, "more than one array"),
    ])
  func broken(text: String, format: ImportFormat, reason: String) {
    let error = #expect(throws: ImportError.self) { try rows(text, format) }
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
  }

  @Test("a survey finds types that write back unchanged, and rows without a key")
  func survey() throws {
    var survey = ImportSurvey(key: "id")
    try survey.addUntyped([
      Column("id", "a"), Column("n", "1"), Column("z", "007"), Column("r", "1.5"),
    ])
    try survey.addUntyped([Column("id", "b"), Column("n", "2"), Column("z", "8"), Column("r", "2")])
    #expect(survey.columns == ["n", "z", "r"])
    #expect(survey.affinities == ["n": .integer, "z": .mixed, "r": .real])
    #expect(throws: ImportError.self) { try survey.add([Column("n", 1)]) }
  }

  @Test("a column of reals, and of integers without an equal real, keeps both unchanged")
  func wideIntegers() throws {
    for values in [[1.5, 9_007_199_254_740_993], [9_007_199_254_740_993, 1.5] as [Value]] {
      var survey = ImportSurvey(key: "id")
      for value in values { try survey.add([Column("id", "a"), Column("n", value)]) }
      try survey.add([Column("id", "b"), Column("n", 1), Column("m", 2.5)])
      try survey.add([Column("id", "c"), Column("m", 9_007_199_254_740_992)])
      #expect(survey.affinities == ["n": .mixed, "m": .real])
      #expect(survey.wideIntegers == ["n"])
    }
  }
}
