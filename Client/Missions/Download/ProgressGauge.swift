/// What is told of a file's progress: it never goes back, never exceeds the whole, and is told in
/// steps that can be seen rather than for each packet.
struct ProgressGauge {
  private let total: Int64
  private let step: Int64
  private var told: Int64 = -1
  private var highest: Int64 = 0

  /// A gauge up to `total` bytes.
  init(total: Int64) {
    self.total = total
    step = max(total / 500, 64 << 10)
  }

  /// The progress to tell, when that is worth it; at the end always, and once.
  ///
  /// - Parameters:
  ///   - done: bytes that are there, fewer than before where some turned out to be wrong.
  ///   - fetched: bytes that came over the network.
  mutating func move(to done: Int64, fetched: Int64) -> DownloadProgress? {
    highest = min(max(highest, done), total)
    guard told < 0 || highest - told >= step || (highest == total && told < total) else {
      return nil
    }
    told = highest
    return DownloadProgress(bytesDone: highest, bytesTotal: total, bytesFetched: fetched)
  }
}

/// When the map is recorded anew: after so many bytes or so much time, so that what a killed
/// process has to look through again stays little, and the store has little to write.
struct RecordRule {
  private let bytesMax: Int64 = 32 << 20
  private let timeMax: Duration = .seconds(1)
  private var recordedBytes: Int64
  private var recordedAt: Duration

  /// A rule for a file of which so much is there and recorded; `now` is any steady clock's.
  init(bytes: Int64, now: Duration) {
    recordedBytes = bytes
    recordedAt = now
  }

  /// Whether to record now, when `bytes` are there; notes that it is done.
  mutating func isDue(bytes: Int64, now: Duration) -> Bool {
    guard bytes != recordedBytes,
      abs(bytes - recordedBytes) >= bytesMax || now - recordedAt >= timeMax
    else { return false }
    (recordedBytes, recordedAt) = (bytes, now)
    return true
  }
}
