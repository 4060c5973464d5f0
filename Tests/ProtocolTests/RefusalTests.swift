import FerryProtocol
import FerryTestSupport
import Testing

/// Operations that can never be applied, as they travel.
@Suite(.hangLimit)
struct RefusalTests {
  @Test("a problem names the operations that can never be applied, and a unique key's holder")
  func golden() throws {
    let bytes = try ProjectFiles.fixture("problems/operation_refused")
    let problem = try #require(Problem(decoding: bytes))
    #expect(problem.code.status == 422 && problem.code.action == .fix)
    #expect(problem.refusals.map(\.code) == [.reservedTable, .uniqueTaken])
    #expect(problem.refusals.map(\.table) == ["ferry_missions", "people"])
    #expect(problem.refusals.map(\.record) == ["m1", "b3"])
    #expect(problem.refusals.map(\.holder) == [nil, "a7"])
    #expect(problem.encoded() == bytes)
  }

  @Test("unknown codes are kept and unknown members ignored; a broken refusal is refused")
  func unknown() throws {
    func problem(_ refusal: String) -> Problem? {
      Problem(
        decoding: Array(
          "{\"code\":\"operation_refused\",\"detail\":\"d\",\"refusals\":[\(refusal)]}".utf8))
    }
    let id = "0199c82c-c001-7000-800a-000000000001"
    let newer = try #require(
      problem("{\"operation\":\"\(id)\",\"code\":\"too_odd\",\"holder\":null,\"more\":[1]}"))
    #expect(newer.refusals.map(\.code) == [RefusalCode(rawValue: "too_odd")])
    #expect(newer.refusals.map(\.holder) == [nil])
    #expect(problem("{\"operation\":\"x\",\"code\":\"unique_taken\"}") == nil)
    #expect(problem("{\"operation\":\"\(id)\"}") == nil)
  }

  @Test("the specification's table of refusals equals the one in the code")
  func specification() throws {
    let text = try ProjectFiles.text("Protocol/SPEC.md")
    let section = try #require(text.firstRange(of: "## 12 Refusals")).upperBound
    let rest = text[section...]
    let end = rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex
    let rows = rest[..<end].split(separator: "\n").filter { $0.hasPrefix("| `") }
    let codes = rows.compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
    #expect(codes == RefusalCode.known.map(\.rawValue))
  }
}
