import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The progress of the sums, and the answers from them, by the machines alone.
@Suite(.hangLimit)
struct DigestAnswerTests {
  static func fold(of sequences: [SequenceNumber]) throws -> DigestFold {
    var fold = DigestFold()
    let state = RecordState().stored()
    for sequence in sequences {
      let key = RecordKey(table: "r\(sequence)", record: "r\(sequence)")
      try state.withUnsafeBytes { try fold.add(sequence: sequence, key, state: $0) }
    }
    return fold
  }

  @Test(
    "sums that hold the last changed record hold everything up to the head",
    arguments: [
      ([], 0, 0, 0, 0), ([], 4, 9, 4, 9), ([5, 7], 4, 9, 8, 7), ([5, 8], 4, 9, 8, 9),
      ([5, 8], 4, 8, 8, 8), ([], 4, 9, 6, 4),
    ] as [([SequenceNumber], SequenceNumber, SequenceNumber, SequenceNumber, SequenceNumber)])
  func reached(
    folded: [SequenceNumber], before: SequenceNumber, head: SequenceNumber,
    newest: SequenceNumber, reached: SequenceNumber
  ) throws {
    let fold = try Self.fold(of: folded)
    #expect(fold.reached(from: before, head: head, newest: newest) == reached)
  }

  static let space = SpaceSnapshot(
    epoch: Epoch(7), head: 9, newest: nil, anchored: nil, retentionHorizon: 0)

  static func answer(
    _ query: DigestQuery, folded: SequenceNumber?, _ limits: Limits = .standard,
    digests: NodeDigests = .records([]), tables: Int = 1
  ) -> (Result<DigestAnswer, Problem>, read: [DigestNode]) {
    var read: [DigestNode] = []
    let found = (0..<tables).map {
      DigestAnswer.TableDigest(table: Name("t\($0)"), records: 1, digest: .zero)
    }
    let answer = query.answer(in: space, folded: folded, limits) {
      (found, false)
    } digests: { part in
      read.append(part.node)
      guard case .records(let records) = digests else { return digests }
      return .records(Array(records.prefix(part.room)))
    }
    return (answer, read)
  }

  static func query(at applied: SequenceNumber, _ table: Name? = nil, nodes: Int = 0) -> DigestQuery
  {
    DigestQuery(
      cursor: Cursor(epoch: Epoch(7), applied: applied), table: table,
      nodes: (0..<nodes).map(DigestNode.leaf))
  }

  @Test(
    "the answer is behind while the sums do not reach the cursor",
    arguments: [(nil, 0), (-1, 0), (4, 4), (9, 9)] as [(SequenceNumber?, SequenceNumber)])
  func behind(folded: SequenceNumber?, known: SequenceNumber) throws {
    for applied in SequenceNumber(0)...9 {
      let answer = try Self.answer(Self.query(at: applied), folded: folded).0.get()
      #expect(answer.folded == known && answer.head == 9 && answer.epoch == Epoch(7))
      #expect((answer.content == .behind) == (applied > known))
      let (nodes, read) = Self.answer(Self.query(at: applied, "t", nodes: 2), folded: folded)
      #expect(read.count == (applied > known ? 0 : 2))
      #expect(try (nodes.get().content == .behind) == (applied > known))
    }
  }

  static func records(_ count: Int, name: String = "r") -> NodeDigests {
    .records(
      (0..<count).map { NodeDigests.RecordDigest(record: Name("\(name)\($0)"), digest: .zero) })
  }

  /// The number of records that each node of an answer lists, and whether the last one continues.
  static func listed(_ answer: Result<DigestAnswer, Problem>) throws -> (counts: [Int], more: Bool)
  {
    let answer = try answer.get()
    guard case .nodes(let nodes) = answer.content else { return ([], answer.more) }
    return (
      nodes.map { if case .records(let records) = $0.digests { records.count } else { -1 } },
      answer.more
    )
  }

  @Test("an answer lists a bounded number of records, and a leaf continues in the next one")
  func recordsOfLeaf() throws {
    var limits = Limits.standard
    limits.digestsPerAnswer = 5
    for (count, counts, more) in [
      (0, [0, 0, 0], false), (1, [1, 1, 1], false), (2, [2, 2, 1], true), (3, [3, 2], true),
      (5, [5], true), (9, [5], true),
    ] {
      let (answer, read) = Self.answer(
        Self.query(at: 0, "t", nodes: 3), folded: 9, limits, digests: Self.records(count))
      let found = try Self.listed(answer)
      #expect(found.counts == counts && found.more == more, "\(count)")
      #expect(read.count == counts.count)
    }
  }

  @Test("an answer is closed at its bytes, within a leaf, too")
  func bytes() throws {
    var limits = Limits.standard
    limits.pageBytes = 2_000
    // 42 bytes a record: 40, and the identifier in quotes.
    let (answer, _) = Self.answer(
      Self.query(at: 0, "t", nodes: 3), folded: 9, limits, digests: Self.records(30))
    let found = try Self.listed(answer)
    #expect(found.counts.count == 2 && found.counts[0] == 30 && found.more)
    #expect(found.counts[1] < 30)
    // The first record of an answer always has room.
    limits.pageBytes = 1
    let (small, _) = Self.answer(
      Self.query(at: 0, "t", nodes: 3), folded: 9, limits, digests: Self.records(2))
    #expect(try Self.listed(small) == ([1], true))
  }

  @Test("the largest answers are smaller than an answer may be")
  func largest() throws {
    let limits = Limits.standard
    // JSON writes a control character as six.
    let long = String(repeating: "\u{1}", count: limits.recordBytes - 6)
    let (answer, _) = Self.answer(
      Self.query(at: 0, "t", nodes: 256), folded: 9,
      digests: Self.records(limits.digestsPerAnswer, name: long))
    #expect(try answer.get().encoded().count < limits.pageBytes + 8_192)
    #expect(try answer.get().more)
    let name = String(repeating: "\"", count: limits.nameBytes - 6)
    let tables = (0..<200_000).map {
      DigestAnswer.TableDigest(table: Name("\(name)\($0)"), records: .max, digest: .zero)
    }
    let query = Self.query(at: 0)
    let listed = query.answer(in: Self.space, folded: 9, limits) {
      (tables, false)
    } digests: { _ in
      .records([])
    }
    #expect(try listed.get().encoded().count < limits.pageBytes + 8_192)
    #expect(try listed.get().more)
  }

  @Test("tables whose sums are not all read are left to the next answer")
  func cutTables() throws {
    func found(_ leaves: [Int], sumsMax: Int) -> (names: [Name], more: Bool) {
      var builder = TableDigestBuilder()
      for (table, count) in leaves.enumerated() {
        for _ in 0..<count {
          Array("t\(table)".utf8).withUnsafeBytes {
            builder.add(table: $0, digest: .zero, records: 1)
          }
        }
      }
      let result = builder.finish(sumsMax: sumsMax)
      return (result.tables.map(\.table), result.more)
    }
    #expect(found([2, 3, 4], sumsMax: 10) == (["t0", "t1", "t2"], false))
    #expect(found([2, 3, 4], sumsMax: 9) == (["t0", "t1"], true))
    #expect(found([], sumsMax: 9) == ([], false))
    #expect(TableDigestBuilder.sumsMax > 2 * DigestNode.leafCount)
  }

  @Test("a refused cursor reads nothing")
  func refused() {
    let (answer, read) = Self.answer(Self.query(at: 10, "t", nodes: 2), folded: 9)
    #expect(throws: Problem.self) { try answer.get() }
    #expect(read.isEmpty)
  }
}
