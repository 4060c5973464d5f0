import FerryProtocol
import FerryTestSupport
import Testing

/// How two trees are compared, without a network.
@Suite("Comparing hash trees", .hangLimit)
struct DigestDescentTests {
  /// One side: records and replies.
  struct Side {
    var rows: [Name: Int64] = [:]

    var sums: DigestSums {
      var sums = DigestSums()
      for (record, value) in rows {
        sums.add(DigestTests.row(record, value), to: DigestNode.leaf(of: record))
      }
      return sums
    }

    func listing(_ leaf: Int) -> [RecordKey: Digest] {
      var list: [RecordKey: Digest] = [:]
      for (record, value) in rows where DigestNode.leaf(of: record) == leaf {
        list[RecordKey(table: "t", record: record)] = DigestTests.row(record, value)
      }
      return list
    }
  }

  /// Returns the records that differ by the descent, and the requested nodes.
  static func compare(
    _ ours: Side, _ theirs: Side, limit: Int = 256, answering: Int = .max
  ) -> (records: [Name], nodes: Int) {
    let (mine, other) = (ours.sums, theirs.sums)
    var descent = DigestDescent(ours: mine, theirs: other[.root])
    var asked = 0
    while !descent.isDone {
      let questions = descent.questions(limit: limit).prefix(answering)
      asked += questions.count
      descent.apply(questions.map { ($0, $0.children.map { other[$0] }) })
    }
    var found: [Name] = []
    for leaf in descent.leaves {
      found += LeafComparison.differing(
        ours: ours.listing(leaf), theirs: theirs.listing(leaf)
      ).map(\.record)
    }
    return (found.sorted(), asked)
  }

  @Test("a comparison finds exactly the records that differ", arguments: UInt64(1)...30)
  func finds(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var ours = Side()
    for index in 0..<2_000 { ours.rows["r\(index)"] = 1 }
    var theirs = ours
    var altered: Set<Name> = []
    for _ in 0..<Int.random(in: 0...12, using: &random) {
      let record: Name = "r\(Int.random(in: 0..<2_100, using: &random))"
      guard altered.insert(record).inserted else { continue }
      switch Int.random(in: 0..<3, using: &random) {
      case 0: ours.rows[record] = ours.rows[record] == nil ? 1 : nil
      case 1: theirs.rows[record] = theirs.rows[record] == nil ? 1 : nil
      default: theirs.rows[record] = 2
      }
    }
    let (found, _) = Self.compare(ours, theirs)
    #expect(found == altered.sorted())
  }

  @Test("a comparison of equal trees needs only their roots")
  func equal() {
    var side = Side()
    for index in 0..<100 { side.rows["r\(index)"] = 1 }
    #expect(Self.compare(side, side) == ([], 0))
    #expect(Self.compare(Side(), Side()) == ([], 0))
  }

  @Test("ten differing records need at most 31 nodes, in trees of any size")
  func cost() {
    var ours = Side()
    for index in 0..<20_000 { ours.rows["r\(index)"] = 1 }
    var theirs = ours
    for index in 0..<10 { theirs.rows["r\(index * 1_999)"] = 2 }
    let (found, nodes) = Self.compare(ours, theirs)
    #expect(found.count == 10)
    #expect(nodes <= 31)
  }

  @Test(
    "a side that answers only some of the requested nodes is asked again", arguments: [1, 3])
  func partialAnswers(answering: Int) {
    var ours = Side()
    for index in 0..<200 { ours.rows["r\(index)"] = 1 }
    let (found, _) = Self.compare(ours, Side(), limit: 16, answering: answering)
    #expect(found.count == 200)
  }
}
