import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The rows of one slice below the retention horizon, by the machine alone.
@Suite(.hangLimit)
struct PruneWorkTests {
  static func work(
    after: SequenceNumber? = nil, first: SequenceNumber? = nil, horizon: SequenceNumber, rows: Int
  ) -> PruneWork {
    PruneWork(
      PruneSlice(after: after, bufferedBefore: 0, rows: rows), retentionHorizon: horizon,
      first: first)
  }

  @Test(
    "a slice goes on behind the last one and ends before the operation at the horizon",
    arguments: [
      (nil, 1, 0, 10, 0..<0), (nil, nil, 0, 10, 0..<0), (nil, nil, 9, 10, 9..<9),
      (nil, 1, 9, 10, 1..<9), (nil, 3, 9, 4, 3..<7), (nil, 9, 9, 4, 9..<9), (nil, 12, 9, 4, 9..<9),
      (2, nil, 9, 4, 3..<7), (6, nil, 9, 4, 7..<9), (8, nil, 9, 4, 9..<9), (20, nil, 9, 4, 9..<9),
    ]
      as [(SequenceNumber?, SequenceNumber?, SequenceNumber, Int, Range<SequenceNumber>)])
  func operations(
    after: SequenceNumber?, first: SequenceNumber?, horizon: SequenceNumber, rows: Int,
    operations: Range<SequenceNumber>
  ) {
    let work = Self.work(after: after, first: first, horizon: horizon, rows: rows)
    #expect(work.operations == operations)
    guard case .pruned(PrunedRows(), let reached, _) = work.step else {
      Issue.record("\(work.step)")
      return
    }
    #expect(reached == operations.upperBound - 1)
  }

  @Test("tombstones and notices go behind the last operation, as many as the slice has rows left")
  func order() {
    var work = Self.work(first: 1, horizon: 9, rows: 4)
    #expect(work.room == 0 && !work.reachesDevices)
    work.rows.operations = 4
    #expect(work.room == 0 && !work.reachesDevices)
    #expect(work.step == .pruned(PrunedRows(operations: 4), reached: 4, isLast: false))
    work = Self.work(after: 6, horizon: 9, rows: 4)
    work.rows.operations = 2
    #expect(work.room == 2 && !work.reachesDevices)
    work.rows.tombstones = 1
    #expect(work.room == 1)
    work.rows.notices = 1
    #expect(work.room == 0 && !work.reachesDevices && !work.forgetsDevices)
    let rows = PrunedRows(operations: 2, tombstones: 1, notices: 1)
    #expect(work.step == .pruned(rows, reached: 8, isLast: false))
  }

  @Test(
    "a slice that deleted nothing else goes on to devices, and is the last if few rows were left",
    arguments: [
      (0, 0, true), (49, 499, true), (50, 0, false), (0, 500, false), (50, 500, false),
    ])
  func devices(buffered: Int, devices: Int, isLast: Bool) {
    var work = Self.work(after: 8, horizon: 9, rows: 4)
    #expect(work.room == 4 && work.reachesDevices)
    work.rows.buffered = buffered
    #expect(work.reachesDevices && work.forgetsDevices)
    work.rows.devices = devices
    #expect(work.step == .pruned(work.rows, reached: 8, isLast: isLast))
  }

  @Test("no device is forgotten while all history is kept")
  func everythingKept() {
    let work = Self.work(first: 1, horizon: 0, rows: 4)
    #expect(work.reachesDevices && !work.forgetsDevices)
    #expect(work.step == .pruned(PrunedRows(), reached: -1, isLast: true))
  }
}
