import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Lists of digests in several answers", .hangLimit)
struct DigestListTests {
  private static func tables(_ names: [Name], more: Bool = true) -> DigestAnswer {
    DigestAnswer(
      epoch: Epoch(7), head: 9, folded: 9,
      content: .tables(
        names.map { DigestAnswer.TableDigest(table: $0, records: 1, digest: .zero) }), more: more)
  }

  private static func leaf(_ names: [[Name]], more: Bool = true) -> DigestAnswer {
    let nodes = names.enumerated().map { index, names in
      DigestAnswer.Node(
        node: .leaf(index),
        digests: .records(names.map { NodeDigests.RecordDigest(record: $0, digest: .zero) }))
    }
    return DigestAnswer(epoch: Epoch(7), head: 9, folded: 9, content: .nodes(nodes), more: more)
  }

  @Test("a list continues after the last name of each answer")
  func rest() throws {
    var list = DigestList()
    #expect(list.after == nil)
    try list.accept(Self.tables(["a", "c"]), bytes: 100)
    #expect(list.after == "c")
    try list.accept(Self.tables(["d"], more: false), bytes: 100)
    #expect(list.after == nil)
    // The records of the next leaf begin with any name.
    try list.accept(Self.leaf([["x", "z"]]), bytes: 100)
    try list.accept(Self.leaf([["zz"], [], ["a", "b"]]), bytes: 100)
    #expect(list.after == "b")
  }

  @Test("a list that does not ascend is refused")
  func order() throws {
    for answer in [Self.tables(["c"]), Self.tables(["d", "b"]), Self.leaf([["a"], ["z"]])] {
      var list = DigestList()
      try list.accept(Self.tables(["c"]), bytes: 100)
      #expect(throws: ReplicaError.self) { try list.accept(answer, bytes: 100) }
    }
  }

  @Test("a list without end is given up")
  func endless() throws {
    var list = DigestList()
    let failed = (0..<10_000).first { number in
      let name = Name("t\(number + 10_000)")
      return (try? list.accept(Self.tables([name]), bytes: 100)) == nil
    }
    #expect(failed == ListBound.smallPagesMax)
  }
}
