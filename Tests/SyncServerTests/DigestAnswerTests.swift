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
    _ query: DigestQuery, folded: SequenceNumber?, digests: NodeDigests = .records([])
  ) -> (Result<DigestAnswer, Problem>, read: [DigestNode]) {
    var read: [DigestNode] = []
    let table = DigestAnswer.TableDigest(table: "t", records: 1, digest: .zero)
    let answer = query.answer(in: space, folded: folded) {
      [table]
    } digests: { node in
      read.append(node)
      return digests
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

  @Test("no node is added to an answer that has more than 4 MiB")
  func bytes() throws {
    let record = NodeDigests.RecordDigest(
      record: Name(String(repeating: "r", count: 1 << 20)), digest: .zero)
    let (answer, read) = Self.answer(
      Self.query(at: 0, "t", nodes: 9), folded: 9, digests: .records([record]))
    guard case .nodes(let nodes) = try answer.get().content else {
      Issue.record("\(answer)")
      return
    }
    #expect(nodes.map(\.node) == (0..<4).map(DigestNode.leaf) && read == nodes.map(\.node))
  }

  @Test("a refused cursor reads nothing")
  func refused() {
    let (answer, read) = Self.answer(Self.query(at: 10, "t", nodes: 2), folded: 9)
    #expect(throws: Problem.self) { try answer.get() }
    #expect(read.isEmpty)
  }
}
