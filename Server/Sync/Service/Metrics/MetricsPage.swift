import FerryHTTPServer

/// The answer to `GET /metrics`; pure.
struct MetricsPage {
  var counts: ServiceMetrics.Counts
  /// Listeners to events now.
  var listeners: Int
  /// Log lines dropped because of a slow reader.
  var droppedLogLines: Int
  /// Log lines omitted because of many strangers.
  var leftOutLogLines = 0
  var version: String
  /// Milliseconds since 1970.
  var startedAt: Int64
  /// The load of the HTTP server.
  var load = HTTPServer.Load()
  var streams = EventStreams.Counts()
  /// `nil` without a standby.
  var standbyPulls: SharedWork?
  var workerRequests: SharedWork?
  /// `nil` for a store of one process.
  var notifications: NodeNotifications?
  /// `nil` without an issuer of JSON Web Tokens.
  var signatures: SignatureChecks.Counts?
  /// `nil` if no spans are exported.
  var tracing: TraceCounts?
  var mirrors: [String: MirrorGauge] = [:]
  /// Milliseconds since 1970.
  var now: Int64 = 0

  func text() -> String {
    var text = PrometheusText()
    writeRequests(&text)
    writePackets(&text)
    writePulls(&text)
    writeSharedWork(&text)
    writeNotifications(&text)
    writeLoad(&text)
    writeSignatures(&text)
    writeRetention(&text)
    writeTracing(&text)
    MirrorMetrics(mirrors, now: now).write(to: &text)
    writeProcess(&text)
    return text.text
  }

  private func writeRequests(_ text: inout PrometheusText) {
    text.metric("ferry_http_requests_total", "counter", "Requests answered.")
    for (key, count) in counts.requests.sorted(by: { $0.key < $1.key }) {
      text.sample(
        "ferry_http_requests_total", count,
        [("route", key.route), ("method", key.method), ("status", String(key.status))])
    }
    text.metric(
      "ferry_http_request_duration_seconds", "histogram",
      "Time from a request's header to its response, without event streams.")
    for route in Route.allCases {
      guard let histogram = counts.durations[route] else { continue }
      text.samples(
        "ferry_http_request_duration_seconds", histogram, [("route", route.rawValue)])
    }
    writeBytes(&text, "ferry_http_request_bytes_total", "Bytes of request bodies.", counts.bytesIn)
    writeBytes(
      &text, "ferry_http_response_bytes_total",
      "Bytes of response bodies, after compression.", counts.bytesOut)
  }

  private func writeBytes(
    _ text: inout PrometheusText, _ name: String, _ help: String, _ bytes: [Route: Int]
  ) {
    text.metric(name, "counter", help)
    for route in Route.allCases {
      guard let count = bytes[route] else { continue }
      text.sample(name, count, [("route", route.rawValue)])
    }
  }

  private func writePackets(_ text: inout PrometheusText) {
    text.metric("ferry_packets_total", "counter", "Packets by their result.")
    for status in ["applied", "duplicate", "buffered", "released", "refused"] {
      text.sample("ferry_packets_total", counts.packets[status] ?? 0, [("status", status)])
    }
    text.metric("ferry_operations_total", "counter", "Operations applied.")
    text.sample("ferry_operations_total", counts.operations)
    text.metric("ferry_conflicts_total", "counter", "Values that lost a conflict.")
    text.sample("ferry_conflicts_total", counts.conflicts)
    text.metric("ferry_commit_packets", "histogram", "Packets in one transaction.")
    text.samples("ferry_commit_packets", counts.batches)
    text.metric("ferry_store_errors_total", "counter", "Failed calls of the store.")
    text.sample("ferry_store_errors_total", counts.storeErrors)
  }

  private func writePulls(_ text: inout PrometheusText) {
    text.metric("ferry_pull_pages_total", "counter", "Pages of pull lists served.")
    text.sample("ferry_pull_pages_total", counts.pages)
    text.metric("ferry_changes_served_total", "counter", "Changes in the pages of pull lists.")
    text.sample("ferry_changes_served_total", counts.changes)
    text.metric("ferry_event_listeners", "gauge", "Open event streams.")
    text.sample("ferry_event_listeners", listeners)
  }

  private func writeSharedWork(_ text: inout PrometheusText) {
    func write(
      _ name: String, _ help: String, _ work: SharedWork?, _ second: String, _ main: String
    ) {
      guard let work else { return }
      text.metric(name, "counter", help)
      text.sample(name, work.done, [("by", second)])
      text.sample(name, work.passedOn, [("by", main)])
    }
    write(
      "ferry_standby_pulls_total", "Pages of pull lists, by the database that served them.",
      standbyPulls, "standby", "primary")
    write(
      "ferry_worker_requests_total",
      "Requests to the database that a worker can do, by the server that did them.",
      workerRequests, "worker", "coordinator")
  }

  private func writeNotifications(_ text: inout PrometheusText) {
    guard let notifications else { return }
    text.metric(
      "ferry_notifications_total", "counter",
      "Notifications of new heads received from the database, this node's own included.")
    text.sample("ferry_notifications_total", notifications.received)
    text.metric(
      "ferry_notification_channels", "gauge",
      "Channels of the database that this node listens to.")
    text.sample("ferry_notification_channels", notifications.channels)
  }

  private func writeLoad(_ text: inout PrometheusText) {
    text.metric(
      "ferry_event_streams_refused_total", "counter",
      "Event streams refused because of the limits.")
    text.sample("ferry_event_streams_refused_total", streams.refused)
    text.metric(
      "ferry_event_streams_evicted_total", "counter",
      "Event streams ended for principals with fewer streams, because of the limit.")
    text.sample("ferry_event_streams_evicted_total", streams.evicted)
    text.metric(
      "ferry_event_streams_revoked_total", "counter",
      "Event streams ended because their credential was no longer valid.")
    text.sample("ferry_event_streams_revoked_total", streams.revoked)
    text.metric("ferry_http_connections", "gauge", "Open connections.")
    text.sample("ferry_http_connections", load.connections)
    text.metric(
      "ferry_http_connections_refused_total", "counter",
      "Connections closed because their address had too many.")
    text.sample("ferry_http_connections_refused_total", load.refused)
    text.metric(
      "ferry_http_connections_late_total", "counter",
      "Connections closed because their client was too slow.")
    text.sample("ferry_http_connections_late_total", load.late)
    text.metric(
      "ferry_http_connections_evicted_total", "counter",
      "Connections without a complete request that gave way to new ones.")
    text.sample("ferry_http_connections_evicted_total", load.evicted)
    text.metric(
      "ferry_memory_limit_bytes", "gauge", "The budget of memory that requests share.")
    text.sample("ferry_memory_limit_bytes", load.memory.limit)
    text.metric("ferry_memory_used_bytes", "gauge", "Memory of the budget in use.")
    text.sample("ferry_memory_used_bytes", load.memory.used)
    text.metric(
      "ferry_memory_transfer_bytes", "gauge", "Its part for request bodies and answers.")
    text.sample("ferry_memory_transfer_bytes", load.memory.transfers)
    text.metric("ferry_memory_waiting", "gauge", "Requests that wait for memory.")
    text.sample("ferry_memory_waiting", load.memory.waiting)
    text.metric("ferry_memory_refused_total", "counter", "Requests that found no memory.")
    text.sample("ferry_memory_refused_total", load.memory.refused)
  }

  private func writeSignatures(_ text: inout PrometheusText) {
    guard let signatures else { return }
    text.metric(
      "ferry_signed_tokens_total", "counter",
      "JSON Web Tokens that were new to this node, by the result of their check.")
    for (result, count) in [
      ("valid", signatures.valid), ("forged", signatures.forged),
      ("unchecked", signatures.unchecked), ("given_up", signatures.givenUp),
    ] {
      text.sample("ferry_signed_tokens_total", count, [("result", result)])
    }
  }

  private func writeRetention(_ text: inout PrometheusText) {
    text.metric(
      "ferry_pruned_rows_total", "counter", "Deleted rows that were older than the retention.")
    let pruned = counts.pruned
    for (kind, count) in [
      ("operation", pruned.operations), ("tombstone", pruned.tombstones),
      ("notice", pruned.notices), ("buffered", pruned.buffered),
    ] {
      text.sample("ferry_pruned_rows_total", count, [("kind", kind)])
    }
    text.metric("ferry_prune_runs_total", "counter", "Runs of the pruner over all spaces.")
    text.sample("ferry_prune_runs_total", counts.pruneRuns)
    text.metric(
      "ferry_prune_unreclaimed_rows", "gauge",
      "Deleted rows whose disk space was not released, at the last run.")
    text.sample("ferry_prune_unreclaimed_rows", counts.unreclaimed)
    guard let age = counts.historyAge else { return }
    text.metric(
      "ferry_history_age_seconds", "gauge",
      "Age of the oldest retention horizon of all spaces, at the last run.")
    text.sample("ferry_history_age_seconds", Double(age) / 1_000)
  }

  private func writeTracing(_ text: inout PrometheusText) {
    guard let tracing else { return }
    text.metric(
      "ferry_trace_requests_total", "counter",
      "Requests that the trace ratio chose, by whether the trace limit left them out.")
    text.sample(
      "ferry_trace_requests_total", tracing.requests.traced, [("result", "traced")])
    text.sample(
      "ferry_trace_requests_total", tracing.requests.limited, [("result", "limited")])
    text.metric("ferry_trace_spans_total", "counter", "Spans by what became of them.")
    text.sample("ferry_trace_spans_total", tracing.export.exported, [("result", "exported")])
    text.sample("ferry_trace_spans_total", tracing.export.dropped, [("result", "dropped")])
    text.metric(
      "ferry_trace_export_failures_total", "counter",
      "Messages that the collector did not take.")
    text.sample("ferry_trace_export_failures_total", tracing.export.failures)
    text.metric("ferry_trace_spans_waiting", "gauge", "Spans that wait for the collector.")
    text.sample("ferry_trace_spans_waiting", tracing.waiting)
  }

  private func writeProcess(_ text: inout PrometheusText) {
    text.metric(
      "ferry_log_lines_dropped_total", "counter",
      "Log lines dropped because the reader was too slow.")
    text.sample("ferry_log_lines_dropped_total", droppedLogLines)
    text.metric(
      "ferry_log_lines_left_out_total", "counter",
      "Log lines of strangers and of rejected requests left out because of their number.")
    text.sample("ferry_log_lines_left_out_total", leftOutLogLines)
    text.metric("process_start_time_seconds", "gauge", "When the process started.")
    text.sample("process_start_time_seconds", Double(startedAt) / 1_000)
    text.metric("ferry_build_info", "gauge", "1; the version is the label.")
    text.sample("ferry_build_info", 1, [("version", version)])
  }
}
