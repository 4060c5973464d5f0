import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle on syncs that report success.
@Suite(.hangLimit)
struct NothingLeftBehindTests {
  private let ids = (1...4).map { OperationID(UniqueID(high: 1, low: $0)) }

  private func found(before: [Int], after: [Int], left: Int = 0) -> Int {
    NothingLeftBehind.judge(
      device: "one", before: before.map { ids[$0] }, after: after.map { ids[$0] }, left: left
    ).count
  }

  @Test("the oracle finds only operations that a sync leaves behind without a report")
  func judging() {
    #expect(found(before: [0, 1], after: [1]) == 1)
    #expect(found(before: [0, 1], after: []) == 0)
    #expect(found(before: [0, 1], after: [2, 3]) == 0, "written while it synced")
    #expect(found(before: [0, 1], after: [1], left: 1) == 0, "the report says so")
  }

  @Test("the evidence contains the operations that the server has not confirmed")
  func reading() throws {
    let world = try DirectWorld(seed: 3, devices: 1)
    let device = world.devices[0]
    for seed in 0..<3 as Range<UInt64> {
      try world.perform(
        PlannedAction(ordinal: 0, at: 0, device: 0, action: .addList, seed: seed), on: device)
    }
    let before = try ReplicaEvidence.unconfirmedOperations(device.reader)
    #expect(before.count == 3)
    try world.sync(device)
    #expect(try ReplicaEvidence.unconfirmedOperations(device.reader).isEmpty)
  }
}
