import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The observations of a server until they are written down.
@Suite(.hangLimit)
struct InspectionLedgerTests {
  private func sighting(
    _ number: UInt64, at: Int64 = 1, reached: SequenceNumber? = nil, client: String? = nil
  ) -> DeviceSighting {
    DeviceSighting(
      space: 1, device: DeviceID(UniqueID(high: 7, low: number)), principal: .anonymous, at: at,
      reached: reached, client: client)
  }

  private func rejection(_ subject: String, at: Int64 = 1) -> Rejection {
    Rejection(
      subject: subject, firstAt: at, lastAt: at, code: "c", detail: "d", principal: "p",
      device: nil)
  }

  @Test("a device that pushes without others between knows its own operations")
  func ownOperations() {
    var ledger = InspectionLedger()
    ledger.recordPull(sighting(1, reached: 10))
    ledger.recordPush(sighting(1), sequences: 11...20, known: 10)
    // The next packets were sent before the answer came.
    ledger.recordPush(sighting(1), sequences: 21...30, known: 10)
    #expect(ledger.drain().sightings.map(\.reached) == [30])
    // Another device's operation 31 is between.
    ledger.recordPush(sighting(1), sequences: 32...40, known: 10)
    #expect(ledger.drain().sightings.map(\.reached) == [30])
    ledger.recordPush(sighting(2), sequences: 41...42, known: nil)
    #expect(ledger.drain().sightings.map(\.reached) == [nil])
  }

  @Test("a device whose replica was restored from a backup goes back")
  func restored() {
    var ledger = InspectionLedger()
    ledger.recordPull(sighting(1, reached: 10, client: "ferry"))
    ledger.recordPull(sighting(1, at: 2, reached: 3))
    let found = ledger.drain().sightings
    #expect(found == [sighting(1, at: 2, reached: 3, client: "ferry")])
    #expect(ledger.drain().isEmpty)
  }

  @Test("the same refusal is one entry with a count; activity adds up by the minute")
  func sums() {
    var ledger = InspectionLedger()
    for at in [Int64(60_000), 70_000, 130_000] {
      ledger.record(rejection("a", at: at), in: 1)
      ledger.count(ActivityCount(at: at, operations: 2, rejected: 1), in: 1)
    }
    let taken = ledger.drain()
    #expect(taken.rejections.map(\.rejection.times) == [3])
    #expect(taken.rejections.map(\.rejection.firstAt) == [60_000])
    #expect(taken.rejections.map(\.rejection.lastAt) == [130_000])
    #expect(taken.activity.map(\.count.at) == [60_000, 120_000])
    #expect(taken.activity.map(\.count.operations) == [4, 2])
  }

  @Test("observations that could not be written down are not lost")
  func outage() {
    var ledger = InspectionLedger()
    ledger.recordPull(sighting(1, reached: 10))
    ledger.record(rejection("a"), in: 1)
    ledger.count(ActivityCount(at: 1, operations: 2), in: 1)
    let taken = ledger.drain()
    ledger.record(rejection("a", at: 5), in: 1)
    ledger.restore(taken)
    let again = ledger.drain()
    #expect(again.sightings == taken.sightings)
    #expect(again.rejections.map(\.rejection.times) == [2])
    #expect(again.activity.map(\.count.operations) == [2])
  }

  @Test("invented devices and faults cost a bounded amount of memory")
  func bounds() {
    var ledger = InspectionLedger()
    for number in 0..<UInt64(InspectionLedger.entriesMax + 50) {
      ledger.recordPull(sighting(number, reached: 1))
      ledger.record(rejection("\(number)"), in: 1)
      ledger.count(ActivityCount(at: Int64(number) * 60_000, operations: 1), in: 1)
    }
    let taken = ledger.drain()
    #expect(taken.sightings.count == InspectionLedger.entriesMax)
    #expect(taken.rejections.count == InspectionLedger.rejectionsMax)
    #expect(taken.activity.count == InspectionLedger.entriesMax)
    // Recorded devices make room for others.
    ledger.recordPull(sighting(.max, reached: 1))
    #expect(ledger.drain().sightings.count == 1)
  }
}
