import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Answers to refused packets", .hangLimit)
struct RefusalAnswerTests {
  private let named = Problem(
    .operationRefused, "no",
    refusals: [
      Refusal(
        operation: OperationID(UniqueID(high: 1, low: 1)), code: .uniqueTaken, detail: "taken",
        table: "t", record: "r")
    ])

  @Test("operations that the server names leave the queue, from a packet of any size")
  func names() {
    for count in [1, 2, 1_000] {
      #expect(RefusalAnswer.decide(named, transactions: count) == .quarantineNamed)
    }
  }

  @Test("if no operation is named, packets get smaller until one transaction leaves the queue")
  func narrows() {
    let problem = Problem(.limitExceeded, "too large")
    var count = 1_000
    var steps = 0
    while case .narrow(let next) = RefusalAnswer.decide(problem, transactions: count) {
      #expect(next < count)
      count = next
      steps += 1
    }
    #expect(count == 1 && steps == 9)
    #expect(RefusalAnswer.decide(problem, transactions: 1) == .quarantineAll)
  }

  @Test(
    "batches that are too large together get smaller packets; one transaction leaves the queue",
    arguments: [RefusalCode.invalidPredicate, .batchTooExpensive])
  func batches(_ code: RefusalCode) {
    let batch = Refusal(
      operation: OperationID(UniqueID(high: 2, low: 2)), code: code, detail: "too many", table: "t",
      record: "")
    let problem = Problem(.operationRefused, "no", refusals: named.refusals + [batch])
    #expect(RefusalAnswer.decide(problem, transactions: 9) == .narrow(to: 4))
    #expect(RefusalAnswer.decide(problem, transactions: 2) == .narrow(to: 1))
    #expect(RefusalAnswer.decide(problem, transactions: 1) == .quarantineNamed)
  }

  @Test("only four problem codes concern a packet's content")
  func concerns() {
    let content = ProblemCode.allCases.filter { RefusalAnswer.concerns($0) }
    #expect(Set(content) == [.operationRefused, .malformedMessage, .limitExceeded, .storageQuota])
  }

  @Test("writes above a quota are sent with the deletes after them, and then wait")
  func quota() {
    let problem = Problem(.storageQuota, "full")
    for count in [1, 1_000] {
      #expect(RefusalAnswer.decide(problem, transactions: count) == .widen)
      #expect(RefusalAnswer.decide(problem, transactions: count, isWidest: true) == .wait)
    }
    let limits = Limits.standard
    #expect(PacketCut().bytesTarget(limits) == limits.packetBytesTarget)
    #expect(PacketCut(isWidest: true).bytesTarget(limits) > limits.packetBytesTarget)
    #expect(PacketCut(isWidest: true).bytesTarget(limits) < limits.messageBytes)
    #expect(PacketCut(bytesMax: 7, isWidest: true).bytesTarget(limits) == 7)
  }
}
