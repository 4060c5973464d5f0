/// The part of `GET /metrics` about mirrors; pure.
///
/// Each value is the result of the mirror's last round. A scrape asks no database.
struct MirrorMetrics {
  private let shown: [(name: String, gauge: MirrorGauge)]
  /// The number of all mirrors.
  private let count: Int
  /// Milliseconds since 1970.
  private let now: Int64

  init(_ mirrors: [String: MirrorGauge], now: Int64) {
    let names = mirrors.keys.sorted().prefix(MirrorGauges.shownMax)
    shown = names.compactMap { name in mirrors[name].map { (name, $0) } }
    (count, self.now) = (mirrors.count, now)
  }

  func write(to text: inout PrometheusText) {
    if shown.isEmpty { return }
    text.metric("ferry_mirrors", "gauge", "Mirrors in this process.")
    text.sample("ferry_mirrors", count)
    text.metric("ferry_mirror_info", "gauge", "1; the space is a label.")
    for (name, gauge) in shown {
      text.sample("ferry_mirror_info", 1, [("mirror", name), ("space", gauge.space)])
    }
    writeRows(to: &text)
    writeLags(to: &text)
    writeLogs(to: &text)
  }

  private func write(
    _ name: String, _ type: String, _ help: String, to text: inout PrometheusText,
    _ value: (MirrorGauge) -> Int64?
  ) {
    let samples: [(String, Int64)] = shown.compactMap { mirror, gauge in
      value(gauge).map { (mirror, $0) }
    }
    if samples.isEmpty { return }
    text.metric(name, type, help)
    for (mirror, value) in samples { text.sample(name, value, [("mirror", mirror)]) }
  }

  private func writeRows(to text: inout PrometheusText) {
    write(
      "ferry_mirror_stopped", "gauge", "1 if writes of programs are not recorded any more.",
      to: &text
    ) { $0.isStopped ? 1 : 0 }
    write(
      "ferry_mirror_unsent_rows", "gauge", "Rows that the space does not have as the tables do.",
      to: &text
    ) { $0.unsent }
    write(
      "ferry_mirror_deferred_rows", "gauge", "Rows of the space that the tables cannot hold.",
      to: &text
    ) { $0.deferred }
    write(
      "ferry_mirror_failing_views", "gauge", "Views whose changes do not all reach the space.",
      to: &text
    ) { $0.failingViews }
    write(
      "ferry_mirror_captured_writes", "gauge", "Writes of programs on their way to the space.",
      to: &text
    ) { $0.captured }
    write(
      "ferry_mirror_returned_rows_total", "counter",
      "Rows of devices that the database refused, and that devices got back.", to: &text
    ) { $0.returned }
    write(
      "ferry_mirror_rejected_writes_total", "counter",
      "Writes of programs that no device can have as they are.", to: &text
    ) { $0.rejected }
  }

  private func writeLags(to text: inout PrometheusText) {
    writeTimes(
      "ferry_mirror_send_lag_seconds",
      "Age of the oldest write of a program on the way to the space; 0 if there is none.", to: &text
    ) { age(since: $0.capturedSince) }
    writeTimes(
      "ferry_mirror_apply_lag_seconds",
      "Time since the mirror knows of a change missing in the tables; 0 if they have all.",
      to: &text
    ) { age(since: $0.behindSince) }
    writeTimes(
      "ferry_mirror_last_round_timestamp_seconds",
      "When the mirror last carried all rows both ways, or found none; 0 before.", to: &text
    ) { $0.lastRound ?? 0 }
  }

  /// - Parameter milliseconds: the value of a sample.
  private func writeTimes(
    _ name: String, _ help: String, to text: inout PrometheusText,
    _ milliseconds: (MirrorGauge) -> Int64
  ) {
    text.metric(name, "gauge", help)
    for (mirror, gauge) in shown {
      text.sample(name, Double(milliseconds(gauge)) / 1_000, [("mirror", mirror)])
    }
  }

  private func writeLogs(to text: inout PrometheusText) {
    write(
      "ferry_mirror_log_bytes", "gauge", "The log that PostgreSQL keeps for the mirror.",
      to: &text
    ) { $0.log?.bytes }
    write(
      "ferry_mirror_log_safe", "gauge",
      "1 if PostgreSQL promises to keep this log; 0 if it may remove it soon, or has.", to: &text
    ) { gauge in gauge.log.map { $0.isSafe ? 1 : 0 } }
    write(
      "ferry_mirror_log_lost", "gauge", "1 if PostgreSQL has removed this log.", to: &text
    ) { gauge in gauge.log.map { $0.bytes == nil ? 1 : 0 } }
  }

  private func age(since time: Int64?) -> Int64 { time.map { max(0, now - $0) } ?? 0 }
}
