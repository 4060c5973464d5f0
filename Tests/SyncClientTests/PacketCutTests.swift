import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Packets that a proxy refuses", .hangLimit)
struct PacketCutTests {
  @Test("a packet that is too large is halved until a single operation is left")
  func halved() {
    var cut = PacketCut()
    var bytes = 1 << 20
    var count = 0
    while bytes > 100 {
      guard
        case .narrow(let smaller) = cut.afterTooLarge(
          bytes: bytes, operations: 2, transactions: 2, transactionBytes: 10, partsMax: 50)
      else {
        Issue.record("not narrowed at \(bytes) bytes")
        return
      }
      #expect(smaller.bytesMax == bytes / 2 && smaller.groupsMax == .max)
      (cut, bytes, count) = (smaller, bytes / 2, count + 1)
    }
    #expect(count == 14)
    #expect(
      cut.afterTooLarge(
        bytes: 10, operations: 1, transactions: 1, transactionBytes: 10, partsMax: 50)
        == .quarantine)
  }

  @Test("each refusal asks for a smaller packet, even if the last cut had no effect")
  func less() {
    let cut = PacketCut(bytesMax: 1_000)
    #expect(
      cut.afterTooLarge(
        bytes: 8_000, operations: 9, transactions: 2, transactionBytes: 0, partsMax: 50)
        == .narrow(PacketCut(bytesMax: 500)))
  }

  @Test("a transaction is not cut into more parts than a server buffers")
  func parts() {
    func answer(_ transactionBytes: Int, transactions: Int = 1) -> PacketCut.Answer {
      PacketCut().afterTooLarge(
        bytes: 2_000, operations: 2, transactions: transactions,
        transactionBytes: transactionBytes, partsMax: 50)
    }
    #expect(answer(49_999) == .narrow(PacketCut(bytesMax: 1_000)))
    #expect(answer(50_000) == .quarantine)
    #expect(answer(50_000, transactions: 2) == .narrow(PacketCut(bytesMax: 1_000)))
  }

  @Test("after a refusal of its content, a packet gets fewer transactions until one is left")
  func content() {
    #expect(
      PacketCut(bytesMax: 7).afterRefusal(transactions: 9)
        == .narrow(PacketCut(groupsMax: 4, bytesMax: 7)))
    #expect(PacketCut().afterRefusal(transactions: 1) == .quarantine)
  }
}
