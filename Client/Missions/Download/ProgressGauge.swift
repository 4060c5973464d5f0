/// The reported progress of a file: it never goes back, never exceeds the whole, and moves in
/// visible steps rather than for each packet.
struct ProgressGauge {
  private let total: Int64
  private let step: Int64
  private var reported: Int64 = -1
  private var reportedFetched: Int64 = 0
  private var highest: Int64 = 0

  /// Creates a gauge up to `total` bytes.
  init(total: Int64) {
    self.total = total
    step = max(total / 500, 64 << 10)
  }

  /// Returns the progress if it is worth a report; at the end always, and once.
  ///
  /// - Parameters:
  ///   - done: the local bytes; fewer than before if some turned out to be wrong.
  ///   - fetched: the bytes received over the network.
  mutating func move(to done: Int64, fetched: Int64) -> DownloadProgress? {
    highest = min(max(highest, done), total)
    guard reported < 0 || highest - reported >= step || (highest == total && reported < total)
    else {
      return nil
    }
    return report(fetched)
  }

  /// Returns the progress at the end of an interrupted download, if anything was received since the
  /// last report. So a caller that adds up several attempts counts each received byte.
  mutating func end(fetched: Int64) -> DownloadProgress? {
    fetched > reportedFetched ? report(fetched) : nil
  }

  private mutating func report(_ fetched: Int64) -> DownloadProgress {
    reported = highest
    reportedFetched = fetched
    return DownloadProgress(bytesDone: highest, bytesTotal: total, bytesFetched: fetched)
  }
}

/// Decides when the map is recorded: after a number of bytes or an amount of time. So a killed
/// process has little to check again, and the store has few writes.
struct RecordRule {
  private let bytesMax: Int64 = 32 << 20
  private let timeMax: Duration = .seconds(1)
  private var recordedBytes: Int64
  private var recordedAt: Duration

  /// Creates a rule for a file with these recorded bytes; `now` is from any steady clock.
  init(bytes: Int64, now: Duration) {
    recordedBytes = bytes
    recordedAt = now
  }

  /// Returns true if a record is due now, with `bytes` here; remembers it as done.
  mutating func isDue(bytes: Int64, now: Duration) -> Bool {
    guard bytes != recordedBytes,
      abs(bytes - recordedBytes) >= bytesMax || now - recordedAt >= timeMax
    else { return false }
    (recordedBytes, recordedAt) = (bytes, now)
    return true
  }
}
