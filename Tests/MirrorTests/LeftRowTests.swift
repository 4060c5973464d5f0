import FerryTestSupport
import Testing

@testable import FerryMirror

/// Rows at the removal of a mirror, without captured writes missing in the space.
@Suite("Rows left by a mirror", .hangLimit)
struct LeftRowTests {
  private let row = LeftRow(table: "t", key: ["1"], values: ["a": "new", "b": "same"])

  private func update(_ name: String, from former: String?) -> LeftWrite {
    LeftWrite(kind: .update, names: [name], former: [former])
  }

  @Test("updates are undone to the values before the first one")
  func updates() {
    let writes = [update("a", from: nil), update("a", from: "between"), update("c", from: "x")]
    #expect(row.before(writes)?.values == ["a": nil, "b": "same", "c": "x"])
    #expect(row.before([]) == row)
    #expect(row.before([LeftWrite(kind: .answer)]) == row)
  }

  @Test(
    "a row captured as a whole was not there, and one captured as deleted was as the file has it")
  func whole() {
    for kind in [CapturedWrite.Kind.insert, .slice, .unfit, .rekey] {
      #expect(row.before([update("a", from: "x"), LeftWrite(kind: kind)])?.values == .some(nil))
    }
    #expect(row.before([LeftWrite(kind: .delete), LeftWrite(kind: .insert)]) == nil)
    #expect(row.before([LeftWrite(kind: .rekey, isFormerKey: true)]) == nil)
  }

  @Test("a mark in the log has the mirror's word from its table, and no statement contains it")
  func marks() {
    let mark = LogMark.sql(7, ["open", "it's"])
    #expect(mark.contains("(SELECT l.secret FROM ferry_mirror.logged d"))
    #expect(mark.contains("open") && mark.contains("it''s"))
  }
}
