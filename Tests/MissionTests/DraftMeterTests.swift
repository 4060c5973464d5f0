import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("The progress of a composed mission", .hangLimit)
struct DraftMeterTests {
  private var meter: DraftMeter

  init() throws {
    let id = try #require(MissionID("course"))
    meter = DraftMeter(id, version: 3, paths: ["a", "b", "c"])
  }

  private func status(
    _ state: DownloadState, _ done: Int64, of total: Int64?, fetched: Int64? = nil
  ) -> DownloadStatus {
    DownloadStatus(
      state: state,
      progress: DownloadProgress(
        bytesDone: done, bytesTotal: total, bytesFetched: fetched ?? done))
  }

  private mutating func progress(
    _ statuses: DownloadStatus..., at seconds: Int = 0
  ) -> MissionProgress {
    meter.progress(
      statuses.enumerated().map { (place: $0, status: $1) }, at: .seconds(seconds))
  }

  @Test("bytes and items add up; while a size is unknown, the items are the measure")
  mutating func sum() {
    let unknown = progress(
      status(.done, 10, of: 10), status(.downloading, 5, of: nil), status(.ready, 0, of: nil))
    #expect(unknown.bytesDone == 15 && unknown.bytesTotal == 15)
    #expect(!unknown.isTotalKnown && unknown.fraction == 1.0 / 3)
    #expect(unknown.itemsDone == 1 && unknown.items == 3)
    #expect(unknown.underWay == [ItemProgress(path: "b", bytesDone: 5, bytesTotal: 5)])
    let known = progress(
      status(.done, 10, of: 10), status(.downloading, 20, of: 40), status(.ready, 0, of: 50))
    #expect(known.isTotalKnown && known.fraction == 0.3)
    #expect(known.underWay == [ItemProgress(path: "b", bytesDone: 20, bytesTotal: 40)])
    #expect(known.id.value == "course" && known.version == 3)
    let nothing = progress(
      status(.ready, 0, of: nil), status(.ready, 0, of: nil), status(.ready, 0, of: nil))
    #expect(nothing.fraction == 0)
  }

  @Test("the progress does not go back if an item is fetched again, and never exceeds the whole")
  mutating func steady() {
    _ = progress(status(.downloading, 60, of: 100), status(.done, 10, of: 10))
    let again = progress(
      status(.downloading, 0, of: 100, fetched: 60), status(.done, 10, of: 10))
    #expect(again.bytesDone == 70 && again.bytesTotal == 110)
    // The server has a smaller file now.
    let smaller = progress(
      status(.downloading, 5, of: 20, fetched: 65), status(.done, 10, of: 10))
    #expect(smaller.bytesDone == 30 && smaller.bytesTotal == 30)
    #expect(smaller.bytesFetched == 75)
  }

  @Test("a cancelled item does not count, and its bytes are taken off")
  mutating func cancelled() {
    _ = progress(status(.downloading, 60, of: 100), status(.downloading, 1, of: 10))
    let left = progress(
      status(.cancelled, 0, of: 100, fetched: 60), status(.downloading, 1, of: 10))
    #expect(left.bytesDone == 1 && left.bytesTotal == 10 && left.items == 1)
    #expect(left.bytesFetched == 61)
  }

  @Test("the time for the rest follows from the rate, if the whole is known")
  mutating func rate() {
    #expect(progress(status(.downloading, 0, of: 100), at: 0).bytesPerSecond == nil)
    let known = progress(status(.downloading, 20, of: 100), at: 2)
    #expect(known.bytesPerSecond == 10 && known.timeLeft == .seconds(8))
    let unknown = progress(
      status(.downloading, 20, of: 100), status(.ready, 0, of: nil), at: 2)
    #expect(unknown.bytesPerSecond == 10 && unknown.timeLeft == nil)
  }
}
