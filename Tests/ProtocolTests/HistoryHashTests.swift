import FerryProtocol
import FerryTestSupport
import Testing

/// The history hash, which distinguishes one history from another.
@Suite("History hash", .hangLimit)
struct HistoryHashTests {
  private static let ids = (0..<64).map { index in
    OperationID(
      UniqueID(
        timestamp: HybridTimestamp(milliseconds: 1_760_000_000_000 + Int64(index / 8)),
        random: UInt64(index)))
  }

  private func historyHash(of ids: some Sequence<OperationID>, from historyHash: UInt64 = 0)
    -> UInt64
  {
    ids.reduce(historyHash) {
      HistoryHash.appending($1, at: HybridTimestamp(milliseconds: 7), base: 3, to: $0)
    }
  }

  @Test("stored history hashes stay valid: the hash of a known history is unchanged")
  func golden() throws {
    let first = OperationID(UniqueID(high: 0x0199_C82C_C001_7000, low: 0x800A_0000_0000_0001))
    let second = OperationID(UniqueID(high: 0x0199_C82C_C384_7000, low: 0x800A_0000_0000_0384))
    #expect(HistoryHash.empty == 0)
    #expect(HistoryHash.text(historyHash(of: [first])) == "aad98b907906fd90")
    #expect(HistoryHash.text(historyHash(of: [first, second])) == "883160811a1176fb")
  }

  @Test("histories that differ in order, in number or in one operation have different hashes")
  func differs() {
    let ids = Self.ids
    var seen: Set<UInt64> = [historyHash(of: ids)]
    for index in ids.indices.dropLast() {
      var swapped = ids
      swapped.swapAt(index, index + 1)
      var without = ids
      without.remove(at: index)
      var doubled = ids
      doubled.insert(ids[index], at: index)
      for other in [swapped, without, doubled] { seen.insert(historyHash(of: other)) }
    }
    for count in ids.indices { seen.insert(historyHash(of: ids.prefix(count))) }
    #expect(seen.count == 1 + 3 * 63 + 64)
  }

  @Test("histories of the same operations with another stamp or base have different hashes")
  func stampsAndBases() {
    let time = HybridTimestamp(milliseconds: 1_760_000_000_000)
    let historyHashes = [(time, 3), (time.next, 3), (time, 4), (time, 0)].map { time, base in
      HistoryHash.appending(Self.ids[0], at: time, base: Int64(base), to: 7)
    }
    #expect(Set(historyHashes).count == 4)
  }

  @Test("two different hashes stay different after the same operations")
  func stays() {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<200 {
      let (one, other) = (random.next(), random.next())
      #expect(historyHash(of: Self.ids, from: one) != historyHash(of: Self.ids, from: other))
    }
  }

  @Test("each bit of an identifier changes about half of the hash's bits")
  func spreads() {
    for bit in 0..<128 {
      let high: UInt64 = bit < 64 ? 1 << UInt64(bit) : 0
      let low: UInt64 = bit < 64 ? 0 : 1 << UInt64(bit - 64)
      var changed = 0
      for id in Self.ids {
        let other = OperationID(UniqueID(high: id.value.high ^ high, low: id.value.low ^ low))
        changed +=
          (historyHash(of: [id], from: 7) ^ historyHash(of: [other], from: 7)).nonzeroBitCount
      }
      #expect((28...36).contains(changed / Self.ids.count), "bit \(bit)")
    }
  }

  @Test("a cursor's anchor has a hash, and may have a timeline")
  func cursors() {
    let (epoch, id) = (Epoch(0x5F3C), Self.ids[0])
    let anchors: [Cursor.Anchor?] = [
      nil, Cursor.Anchor(head: 12, operation: id, historyHash: 0),
      Cursor.Anchor(head: 13, operation: id, historyHash: .max),
      Cursor.Anchor(head: 13, operation: id, historyHash: 0, timeline: Timeline(0)),
      Cursor.Anchor(head: 14, operation: id, historyHash: 7, timeline: Timeline(.max)),
    ]
    for anchor in anchors {
      let cursor = Cursor(epoch: epoch, applied: 7, received: 12, anchor: anchor)
      #expect(Cursor(cursor.description) == cursor)
      let list = Cursor(epoch: epoch, applied: 0, received: 12, anchor: anchor, began: 11)
      #expect(Cursor(list.description) == list)
      #expect(list.began == (anchor == nil ? nil : 11))
    }
    let cursor = Cursor(epoch: epoch, applied: 12, anchor: anchors[1])
    let text = "0000000000005f3c.12.12.12.\(id)"
    #expect(cursor.description == text + ".0000000000000000")
    let zeros = ".0000000000000000"
    for end in [
      "", ".", ".0", ".000000000000000g", "\(zeros)0", "\(zeros).", "\(zeros).1",
      "\(zeros)\(zeros).",
      "\(zeros)\(zeros).1", "\(zeros)..1", "\(zeros)\(zeros)\(zeros)",
    ] {
      #expect(Cursor(text + end) == nil, "\(end)")
    }
    #expect(Cursor(text + zeros + zeros)?.anchor?.timeline == Timeline(0))
    let place = Cursor.Anchor(head: 12, operation: id)
    #expect(Cursor(epoch: epoch, applied: 7, anchor: place).description == "0000000000005f3c.7.7")
  }

  @Test("a receipt contains the hashes around its packet only if it has them")
  func receipts() throws {
    let receipt = try FixtureTests.answer("applied").receipt
    #expect(receipt.historyHashBefore == 0x91A2_7C05_3DE8_46FB)
    #expect(receipt.historyHash == 0x0C5B_F2E7_8A19_D364)
    #expect(receipt.timeline == Timeline(0x7D02_C451_9BE8_3F6A))
    let released = try FixtureTests.answer("released")
    #expect(
      released.receipt.historyHash != nil && released.receipt.timeline == nil, "an older server's")
    #expect(released.released[0].historyHashBefore == released.receipt.historyHash)
    #expect(released.released.map { $0.historyHash == nil } == [false, true], "an older server's")
    for name in ["duplicate", "buffered", "gaps"] {
      let receipt = try FixtureTests.answer(name).receipt
      #expect(receipt.historyHash == nil && receipt.historyHashBefore == nil)
    }
    for (member, text) in ["historyHash", "timeline"].flatMap({ member in
      ["", "1", "000000000000000g", "00000000000000000"].map { (member, $0) }
    }) {
      let answer =
        #"{"tail":"\#(Self.ids[0])","status":"applied","\#(member)":"\#(text)","#
        + #""outcomes":[],"epoch":"0000000000000001","head":"1","time":1}"#
      #expect(throws: MalformedMessage.self) {
        try PacketAnswer(decoding: Array(answer.utf8), limits: .standard)
      }
    }
  }
}
