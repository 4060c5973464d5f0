import FerryConformance
import FerryHTTPServer
import FerryNetworking

/// Carries requests and responses in virtual time, and loses, delays, duplicates and damages them.
// SAFETY: touched on the scheduler's thread only.
package final class SimulatedNetwork: @unchecked Sendable {
  let scheduler: Scheduler
  let dice: FaultDice
  let trace: Trace
  /// Set once, before anything is sent.
  package unowned var server: any ServerEndpoint
  /// Called with the name of the actor whose process dies at a step.
  package var onCrash: (String) -> Void = { _ in }
  private var messages = 0
  /// Requests so far, by device.
  private var requests: [String: Int] = [:]

  package init(
    _ scheduler: Scheduler, dice: FaultDice, trace: Trace, server: any ServerEndpoint
  ) {
    self.scheduler = scheduler
    self.dice = dice
    self.trace = trace
    self.server = server
  }

  func nextMessage() -> Int {
    messages += 1
    return messages
  }

  func requestCount(of device: String) -> Int { requests[device, default: 0] }

  /// Delivers a request to the server, if the network lets it pass, and calls `arrived` with the
  /// handler's response. Returns the message's number, for the trace.
  func deliver(
    _ request: TransportRequest, over link: NetworkLink, label: String,
    failed: @escaping @Sendable (TransportError) -> Void,
    arrived: @escaping @Sendable (HTTPResponse, _ generation: Int, _ message: Int) -> Void
  ) {
    let message = nextMessage()
    requests[link.device, default: 0] += 1
    trace.record(.sent, link.device, peer: "server", message: message, label)
    trace.digest(request.body ?? [])
    guard !dice.roll(.drop, at: link.device + "/up") else {
      return trace.record(.dropped, link.device, peer: "server", message: message, "request lost")
    }
    if dice.roll(.reset, at: link.device + "/up") {
      trace.record(.dropped, link.device, peer: "server", message: message, "connection reset")
      scheduler.after(link.delay()) { failed(TransportError(.interrupted, "connection reset")) }
      return
    }
    if dice.roll(.crash, at: link.device) {
      scheduler.after(0) { [self] in onCrash(link.device) }
    }
    let copies = dice.roll(.duplicate, at: link.device + "/up") ? 2 : 1
    for copy in 0..<copies {
      if copy > 0 { trace.record(.duplicated, link.device, peer: "server", message: message) }
      // No packet before it holds a report in its place: the second copy overtakes later ones
      // rarely unless it is late.
      let lag = copy > 0 && label == "bundle-reports" ? link.longDelay() : 0
      scheduler.after(link.delay() + lag) { [self] in
        arrive(request, over: link, message: message, failed: failed) { response, generation in
          // A device receives one response only: the one to the first copy.
          if copy == 0 { arrived(response, generation, message) }
        }
      }
    }
  }

  private func arrive(
    _ request: TransportRequest, over link: NetworkLink, message: Int,
    failed: @escaping @Sendable (TransportError) -> Void,
    answered: @escaping @Sendable (HTTPResponse, Int) -> Void
  ) {
    guard !link.isCut(.up) else {
      return trace.record(.dropped, link.device, peer: "server", message: message, "partitioned")
    }
    guard let generation = server.generation else {
      trace.record(.dropped, link.device, peer: "server", message: message, "nobody listens")
      return failed(TransportError(.offline, "connection refused"))
    }
    var request = request
    if request.body != nil, dice.roll(.corrupt, at: link.device + "/up") {
      trace.record(.corrupted, link.device, peer: "server", message: message)
      request.body = Corruption.damage(request.body ?? [], link.choice)
    }
    trace.record(.delivered, "server", peer: link.device, message: message)
    guard let received = HTTPRequest(request, from: link.device) else {
      return failed(TransportError(.badAddress, request.url))
    }
    let server = server
    scheduler.task {
      let response = await server.respond(to: received, message: message)
      answered(response, generation)
    }
  }

  /// Returns `true` if a response of process `generation` can leave it.
  func isListening(_ generation: Int) -> Bool { server.generation == generation }
}

extension HTTPRequest {
  /// Creates the request as the HTTP layer passes it on; `nil` for an invalid address.
  init?(_ request: TransportRequest, from device: String) {
    let parts = request.url.utf8.split(
      separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false
    ).map(Substring.init)
    guard parts.count == 4, let target = try? RequestTarget(parsing: "/" + parts[3]) else {
      return nil
    }
    var headers: HTTPHeaders = ["Host": String(parts[2])]
    for field in request.headers.fields { headers.append(field.name, field.value) }
    self.init(
      method: request.method.rawValue, path: target.path, segments: target.segments,
      query: target.query, headers: headers, body: request.body ?? [],
      bodyWireBytes: request.body?.count ?? 0, remoteAddress: device)
  }
}
