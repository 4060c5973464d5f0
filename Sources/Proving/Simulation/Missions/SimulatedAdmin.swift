import FerryHTTPServer
import FerryNetworking
import FerryProtocol

/// An admin who sends requests to the server's process itself: they pass no network.
// SAFETY: touched on the scheduler's thread only.
struct SimulatedAdmin: @unchecked Sendable {
  private let server: SimulatedServer
  private let trace: Trace
  private let kind: TraceEvent.Kind

  /// - Parameter kind: The kind of the events for refused requests.
  init(_ server: SimulatedServer, _ trace: Trace, _ kind: TraceEvent.Kind) {
    (self.server, self.trace, self.kind) = (server, trace, kind)
  }

  /// Sends a request. Returns the status, and the body of a short answer.
  func send(
    _ method: TransportMethod, _ path: String, _ body: [UInt8] = []
  ) async -> (status: Int, body: [UInt8]) {
    let request = TransportRequest(method, "http://ferry.test" + path, body: body)
    guard let received = HTTPRequest(request, from: "publisher") else { return (400, []) }
    let response = await server.respond(to: received, message: 0)
    guard case .bytes(let answer) = response.body else { return (response.status, []) }
    if response.status >= 400, let problem = Problem(decoding: answer) {
      trace.record(kind, "publisher", "\(method.rawValue) \(path): \(problem.detail)")
    }
    return (response.status, answer)
  }

  /// Sends the content named by a manifest. Returns `true` if the server has all of it.
  func upload(_ manifest: MissionManifest, content: (ContentHash) -> [UInt8]) async -> Bool {
    for hash in Set(manifest.items.map(\.hash)).sorted() {
      let path = "/v1/spaces/\(manifest.space)/blobs/\(hash)"
      let status = await send(.put, path, content(hash)).status
      guard status == 201 || status == 204 else { return false }
    }
    return true
  }
}
