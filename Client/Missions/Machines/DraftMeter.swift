import FerryProtocol

/// Sums up the progress of a composed mission's downloads. It has no clock: the caller passes the
/// time.
struct DraftMeter: Sendable {
  private let id: MissionID
  private let version: Int64
  private let paths: [String]
  /// The highest progress reported so far.
  private var shown: Int64 = 0
  private var cancelled = 0
  private var rates = RateMeter()
  /// The bytes received over the network in this run.
  private(set) var fetched: Int64 = 0

  /// Creates the meter of a mission with these items.
  init(_ id: MissionID, version: Int64, paths: [String]) {
    (self.id, self.version, self.paths) = (id, version, paths)
  }

  /// Returns the progress by the statuses of the items' downloads, with the items' places. Cancelled
  /// items do not count.
  mutating func progress(
    _ statuses: [(place: Int, status: DownloadStatus)], at now: Duration
  ) -> MissionProgress {
    var sum = MissionProgress(
      id: id, version: version, bytesDone: 0, bytesTotal: 0, itemsDone: 0, items: 0,
      bytesFetched: 0)
    for (place, status) in statuses {
      let progress = status.progress
      sum.bytesFetched += progress.bytesFetched
      if status.state == .cancelled { continue }
      sum.items += 1
      if status.state == .done { sum.itemsDone += 1 }
      sum.bytesDone += progress.bytesDone
      sum.bytesTotal += progress.bytesTotal ?? progress.bytesDone
      if progress.bytesTotal == nil, status.state != .done { sum.isTotalKnown = false }
      guard status.state == .downloading else { continue }
      sum.underWay.append(
        ItemProgress(
          path: paths[place], bytesDone: progress.bytesDone,
          bytesTotal: progress.bytesTotal ?? progress.bytesDone))
    }
    let left = statuses.count { $0.status.state == .cancelled }
    if left > cancelled { (cancelled, shown) = (left, 0) }
    shown = min(sum.bytesTotal, max(shown, sum.bytesDone))
    sum.bytesDone = shown
    fetched = max(fetched, sum.bytesFetched)
    sum.bytesFetched = fetched
    rates.mark(fetched, at: now)
    sum.bytesPerSecond = rates.rate(fetched, at: now)
    if sum.isTotalKnown, let rate = sum.bytesPerSecond, rate > 0 {
      sum.timeLeft = .seconds(min(Double(sum.bytesTotal - shown) / rate, 1e9))
    }
    return sum
  }
}
