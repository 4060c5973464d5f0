import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A device's chain compared with the tail named by the server: facts in, decision out.
@Suite("The decision about a device's chain", .hangLimit)
struct ChainDecisionTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let tail: ChainDecision.Tail
    var isSetBack = false
    var confirmedLater = false
    var earlierChains = false
    let decision: ChainDecision

    var testDescription: String {
      "\(tail), set back: \(isSetBack), confirmed later: \(confirmedLater), "
        + "earlier chains: \(earlierChains)"
    }
  }

  static let cases: [Case] = [
    // The server does not know the device.
    Case(tail: .none, decision: .goOn),
    Case(tail: .none, isSetBack: true, decision: .goOn),
    Case(tail: .none, confirmedLater: true, decision: .sendAllAgain),
    Case(tail: .none, isSetBack: true, confirmedLater: true, decision: .sendAllAgain),
    // An earlier chain is no reason if the server reports no loss.
    Case(tail: .none, earlierChains: true, decision: .goOn),
    // It names a packet.
    Case(tail: .packet(3), decision: .confirm),
    Case(tail: .packet(3), earlierChains: true, decision: .confirm),
    Case(tail: .packet(3), confirmedLater: true, decision: .sendAgain(after: 3)),
    Case(tail: .packet(3), isSetBack: true, decision: .confirm),
    Case(tail: .packet(3), isSetBack: true, confirmedLater: true, decision: .sendAgain(after: 3)),
    Case(tail: .packet(3), isSetBack: true, earlierChains: true, decision: .sendAllAgain),
    Case(
      tail: .packet(3), isSetBack: true, confirmedLater: true, earlierChains: true,
      decision: .sendAllAgain),
    // It names the newest packet, which is not kept any more.
    Case(tail: .newest, decision: .goOn),
    Case(tail: .newest, isSetBack: true, decision: .goOn),
    Case(tail: .newest, isSetBack: true, earlierChains: true, decision: .sendAllAgain),
    // The server names an operation of another device.
    Case(tail: .unknown, decision: .leaveToCopy),
    Case(tail: .unknown, earlierChains: true, decision: .leaveToCopy),
    Case(tail: .unknown, isSetBack: true, decision: .sendAllAgain),
  ]

  @Test("the tail, a rollback and the confirmed packets decide", arguments: cases)
  func decides(row: Case) {
    let facts = ChainDecision.Facts(
      isSetBack: row.isSetBack, tail: row.tail, hasConfirmedLater: row.confirmedLater,
      keepsEarlierChains: row.earlierChains)
    #expect(ChainDecision(facts) == row.decision)
  }
}
