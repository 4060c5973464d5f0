import FerryHTTPServer
import FerryProtocol

/// Answers listeners with streams of a space's events.
struct EventHandler: Sendable {
  let core: ServiceCore
  let gate: AccessGate
  let hub: HeadHub
  let streams: EventStreams
  let lifecycle: ServiceLifecycle

  func listen(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    if lifecycle.isStopping { throw Problem(.unavailable, "the server is stopping") }
    let space = try await core.find(name)
    let request = context.request
    let heard = request.headers["Last-Event-ID"].flatMap { SequenceNumber($0) }
    let stream = HTTPStream()
    let entry = EventStreams.Entry(
      stream: stream, principal: admission.principal,
      visitor: RequestAccess.visitor(request, .events),
      space: name)
    let number = try streams.begin(entry, quota: core.quotas.streams)
    do {
      try await core.ask { (store) async throws(StoreError) in
        try await hub.add(stream, to: space, heard: heard) { () async throws(StoreError) in
          try await store.space(named: name)
        }
      }
    } catch {
      streams.end(number)
      throw error
    }
    stream.onClose { streams.end(number) }
    return HTTPResponse(
      status: 200,
      // X-Accel-Buffering: nginx passes events on as they come.
      headers: [
        "Content-Type": "text/event-stream", "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      ],
      body: .stream(stream))
  }

  /// Ends the streams of events whose credentials are not valid any more. While the store is not
  /// available, the streams go on.
  func checkStreams() async {
    await streams.end { entry in
      guard let admitted = try? await gate.admit(entry.visitor, to: entry.space, need: .reader)
      else { return nil }
      guard case .failure(let problem) = admitted else { return true }
      return problem.code != .unauthorized && problem.code != .forbidden
    }
  }
}
