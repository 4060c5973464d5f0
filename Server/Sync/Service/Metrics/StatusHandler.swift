import FerryHTTPServer
import FerryProtocol
import Synchronization

/// Answers requests about the server itself: health, readiness and metrics.
final class StatusHandler: Sendable {
  private let core: ServiceCore
  private let gate: AccessGate
  private let hub: HeadHub
  private let streams: EventStreams
  private let lifecycle: ServiceLifecycle
  private let tracer: Tracer?
  private let mirrors: MirrorGauges
  private let load = Mutex<@Sendable () -> HTTPServer.Load>({ HTTPServer.Load() })
  private let startedAt: Int64
  private let wall: @Sendable () -> Int64

  init(
    _ core: ServiceCore, _ parts: SyncService.Parts, streams: EventStreams,
    lifecycle: ServiceLifecycle
  ) {
    (self.core, self.streams, self.lifecycle) = (core, streams, lifecycle)
    (gate, hub, tracer, mirrors) = (parts.gate, parts.hub, parts.tracer, parts.mirrors)
    wall = parts.clock.wall
    startedAt = wall()
  }

  /// Shows the load of the HTTP server in the metrics from now on.
  func observe(_ load: @escaping @Sendable () -> HTTPServer.Load) {
    self.load.withLock { $0 = load }
  }

  func health(_ context: inout RequestContext) -> HTTPResponse { .text("ok\n") }

  func readiness(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    if lifecycle.isStopping { throw Problem(.unavailable, "the server is stopping") }
    try await core.ask { (store) async throws(StoreError) in try await store.check() }
    return .text("ready\n")
  }

  func metrics(_ context: inout RequestContext) -> HTTPResponse {
    let counts = core.counts
    let page = MetricsPage(
      counts: core.metrics.snapshot, listeners: hub.listenerCount,
      droppedLogLines: core.log.droppedLines, leftOutLogLines: core.log.leftOutLines,
      version: FerryVersion.current,
      startedAt: startedAt, load: load.withLock { $0 }(), streams: streams.counts,
      standbyPulls: counts.standbyPulls, workerRequests: counts.workerRequests,
      notifications: counts.notifications, signatures: gate.signatureCounts,
      tracing: tracer.map(TraceCounts.init), mirrors: mirrors.all, now: wall())
    return .text(page.text(), mediaType: PrometheusText.mediaType)
  }
}
