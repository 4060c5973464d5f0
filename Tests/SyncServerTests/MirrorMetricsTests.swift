import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The part of the metrics about mirrors, without a database.
@Suite("Metrics of mirrors", .hangLimit)
struct MirrorMetricsTests {
  private func lines(_ mirrors: [String: MirrorGauge], now: Int64 = 10_000) -> Set<String> {
    var text = PrometheusText()
    MirrorMetrics(mirrors, now: now).write(to: &text)
    return Set(text.text.split(separator: "\n").map(String.init))
  }

  @Test("lags grow between rounds, and a mirror without work has none")
  func lags() {
    var busy = MirrorGauge(space: "crm", unsent: 1, deferred: 2, isStopped: false)
    (busy.captured, busy.capturedSince, busy.behindSince) = (3, 4_000, 8_500)
    (busy.lastRound, busy.returned, busy.rejected) = (9_000, 5, 6)
    busy.failingViews = 7
    let idle = MirrorGauge(space: "b", unsent: 0, deferred: 0, isStopped: true)
    let lines = lines(["a": busy, "b": idle])
    let expected: [String] = [
      #"ferry_mirrors 2"#, #"ferry_mirror_info{mirror="a",space="crm"} 1"#,
      #"ferry_mirror_unsent_rows{mirror="a"} 1"#, #"ferry_mirror_deferred_rows{mirror="a"} 2"#,
      #"ferry_mirror_captured_writes{mirror="a"} 3"#, #"ferry_mirror_stopped{mirror="b"} 1"#,
      #"ferry_mirror_send_lag_seconds{mirror="a"} 6.0"#,
      #"ferry_mirror_apply_lag_seconds{mirror="a"} 1.5"#,
      #"ferry_mirror_send_lag_seconds{mirror="b"} 0.0"#,
      #"ferry_mirror_last_round_timestamp_seconds{mirror="a"} 9.0"#,
      #"ferry_mirror_returned_rows_total{mirror="a"} 5"#,
      #"ferry_mirror_rejected_writes_total{mirror="a"} 6"#,
      #"ferry_mirror_failing_views{mirror="a"} 7"#, #"ferry_mirror_failing_views{mirror="b"} 0"#,
    ]
    for line in expected { #expect(lines.contains(line), "\(line) in \(lines)") }
    #expect(!lines.contains { $0.hasPrefix("ferry_mirror_log") })
    // A clock that was put back makes no negative age.
    #expect(
      self.lines(["a": busy], now: 0).contains(
        #"ferry_mirror_send_lag_seconds{mirror="a"} 0.0"#))
  }

  @Test("a kept log is shown with its size, and a lost one without")
  func logs() {
    var (kept, lost) = (
      MirrorGauge(space: "s", unsent: 0, deferred: 0, isStopped: false),
      MirrorGauge(space: "s", unsent: 0, deferred: 0, isStopped: false)
    )
    kept.log = MirrorGauge.Log(bytes: 7, isSafe: true)
    lost.log = MirrorGauge.Log(bytes: nil, isSafe: false)
    let lines = lines(["kept": kept, "lost": lost])
    #expect(lines.contains(#"ferry_mirror_log_bytes{mirror="kept"} 7"#))
    #expect(lines.contains(#"ferry_mirror_log_safe{mirror="kept"} 1"#))
    #expect(lines.contains(#"ferry_mirror_log_lost{mirror="lost"} 1"#))
    #expect(!lines.contains { $0.hasPrefix(#"ferry_mirror_log_bytes{mirror="lost"}"#) })
  }

  @Test("a page has the samples of a bounded number of mirrors, and counts all")
  func bounded() {
    var mirrors: [String: MirrorGauge] = [:]
    for number in 0..<(MirrorGauges.shownMax + 10) {
      mirrors["m\(number)"] = MirrorGauge(space: "s", unsent: 0, deferred: 0, isStopped: false)
    }
    let lines = lines(mirrors)
    #expect(lines.contains("ferry_mirrors \(MirrorGauges.shownMax + 10)"))
    let samples = lines.filter { $0.hasPrefix("ferry_mirror_stopped{") }
    #expect(samples.count == MirrorGauges.shownMax)
  }
}
