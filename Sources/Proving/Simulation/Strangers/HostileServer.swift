import FerryConformance
import FerryHTTPServer
import FerryNetworking
import FerryProtocol

/// A server that lies, between some devices and the honest server, for spans of a world. It drops
/// packets and confirms them, spoils answers, and rejects without a reason. For the rest it passes
/// the requests to the honest server.
///
/// It adds false rows to strays alone (``FalsePages``): a server may state anything about rows of
/// others, and only a comparison finds such a lie.
// SAFETY: touched on the scheduler's thread only.
final class HostileServer: ServerEndpoint, @unchecked Sendable {
  private static let name = "hostile"

  private let honest: any ServerEndpoint
  private let trace: Trace
  private let limits: Limits
  private var random: SeededRandom
  private let manner: Manner
  private var receipts: FalseReceipts
  private var pages: FalsePages
  private var rejections: FalseRejections
  /// The spans in which a device reaches this server, by device.
  private var spans: [String: Int] = [:]
  /// The last operations of packets sent here by a device, by device.
  private var tails: [String: [OperationID]] = [:]

  /// The lies combined by a server. Those of both manners together would hide work for good
  /// (SIMULATION.md).
  enum Manner {
    /// The pages name dropped packets.
    case names
    /// It makes devices take other identifiers.
    case identities
  }

  init(_ honest: any ServerEndpoint, trace: Trace, limits: Limits, seed: UInt64) {
    (self.honest, self.trace, self.limits) = (honest, trace, limits)
    random = SeededRandom(seed, "hostile server")
    manner = random.chance(1, in: 2) ? .names : .identities
    receipts = FalseReceipts(
      random: SeededRandom(seed, "false receipts"), buffers: manner == .identities)
    pages = FalsePages(random: SeededRandom(seed, "false pages"), manner: manner)
    rejections = FalseRejections(random: SeededRandom(seed, "false rejections"))
  }

  var generation: Int? { honest.generation }

  /// Begins a span for a device.
  func begin(for device: String) { spans[device, default: 0] += 1 }

  func end(for device: String) { spans[device] = max(0, spans[device, default: 0] - 1) }

  /// Ends all spans: the honest server is reachable.
  func endAll() { spans = [:] }

  func respond(to request: HTTPRequest, message: Int) async -> HTTPResponse {
    let segments = request.segments
    guard spans[request.remoteAddress, default: 0] > 0, segments.first == "v1",
      segments.dropFirst().first == "spaces", !random.chance(1, in: 3)
    else { return await honest.respond(to: request, message: message) }
    switch segments.last {
    case "packets": return await push(request, message)
    case "changes": return await pull(request, message)
    case "records", "events", "schema", "digests": return await other(request, message)
    default:
      guard segments.count == 3 else {
        return await honest.respond(to: request, message: message)
      }
      return await other(request, message)
    }
  }

  private func log(_ lie: String, _ request: HTTPRequest, _ message: Int) {
    trace.record(.corrupted, Self.name, peer: request.remoteAddress, message: message, lie)
  }

  // MARK: Packets

  private func push(_ request: HTTPRequest, _ message: Int) async -> HTTPResponse {
    guard let packet = try? Packet(decoding: request.body, limits: limits), let tail = packet.tail
    else { return await honest.respond(to: request, message: message) }
    var known = tails[request.remoteAddress, default: []]
    if known.last != tail { known.append(tail) }
    tails[request.remoteAddress] = known
    switch random.below(6) {
    case 0:
      let reach: FalseRejections.Reach =
        manner == .names || packet.hasSteadyRows ? .requests : .packets
      let response = rejections.next(reach, packet)
      log("rejects the packet with \(response.status)", request, message)
      return response
    case 1:
      let response = await honest.respond(to: request, message: message)
      log("takes the packet and spoils the receipt", request, message)
      return response.mapping(limits) {
        receipts.spoil($0)
      } otherwise: {
        pages.spoil($0)
      }
    default:
      guard let head = await head(of: request, packet.device) else {
        return await honest.respond(to: request, message: message)
      }
      let (answer, lie) = receipts.answer(for: packet, at: head, known)
      log("drops the packet: \(lie)", request, message)
      return HTTPResponse(
        status: answer.receipt.status == .buffered ? 202 : 200,
        headers: ["Content-Type": "application/json"], body: .bytes(answer.encoded()))
    }
  }

  /// Returns the honest server's state, as a device without a cursor learns it.
  private func head(of request: HTTPRequest, _ device: DeviceID) async -> PageHead? {
    guard honest.generation != nil, request.segments.count > 2 else { return nil }
    let ask = TransportRequest(
      .get, "http://ferry.test/v1/spaces/\(request.segments[2])/changes?limit=1&device=\(device)")
    guard let received = HTTPRequest(ask, from: Self.name) else { return nil }
    let response = await honest.respond(to: received, message: 0)
    guard case .bytes(let body) = response.body else { return nil }
    return try? PageReader.head(of: body)
  }

  // MARK: Pages

  private func pull(_ request: HTTPRequest, _ message: Int) async -> HTTPResponse {
    if random.chance(1, in: 6) {
      let response = rejections.next(.requests, nil)
      log("rejects the pull with \(response.status)", request, message)
      return response
    }
    let asked = request.query["cursor"].flatMap { Cursor($0) }
    var response = await honest.respond(to: request, message: message)
    guard case .bytes(let body) = response.body, let head = try? PageReader.head(of: body) else {
      return await goOn(asked, request, message) ?? response
    }
    let (page, lie) = pages.page(
      body, head, asked, from: request.remoteAddress,
      tails: tails[request.remoteAddress, default: []])
    log(lie, request, message)
    response.body = .bytes(page)
    return response
  }

  /// Returns the next page of a list without an end; `nil` if it ends here.
  private func goOn(
    _ asked: Cursor?, _ request: HTTPRequest, _ message: Int
  ) async -> HTTPResponse? {
    guard let asked, asked.received > asked.applied, !random.chance(1, in: 10),
      let head = await head(of: request, DeviceID(UniqueID(high: 0, low: 0)))
    else { return nil }
    log("a list without an end goes on", request, message)
    return HTTPResponse(
      status: 200, headers: ["Content-Type": "application/json"],
      body: .bytes(pages.empty(head, beyond: asked)))
  }

  // MARK: Others

  private func other(_ request: HTTPRequest, _ message: Int) async -> HTTPResponse {
    if random.chance(1, in: 2) {
      let response = rejections.next(.requests, nil)
      log("rejects \(request.segments.last ?? "") with \(response.status)", request, message)
      return response
    }
    var response = await honest.respond(to: request, message: message)
    guard case .bytes(let body) = response.body else { return response }
    log("spoils the answer to \(request.segments.last ?? "")", request, message)
    response.body = .bytes(pages.spoil(body))
    return response
  }
}

extension Packet {
  /// True if it has rows that a user sees for ever after they are written: oracles would take a
  /// rejection of them for a loss.
  fileprivate var hasSteadyRows: Bool {
    operations.contains { $0.key.table == "ledger" || $0.key.table == "beats" }
  }
}

extension HTTPResponse {
  /// Returns the response with another answer to a packet, or with other bytes if it is none.
  fileprivate func mapping(
    _ limits: Limits, _ change: (PacketAnswer) -> PacketAnswer,
    otherwise spoil: ([UInt8]) -> [UInt8]
  ) -> HTTPResponse {
    guard case .bytes(let body) = self.body else { return self }
    var response = self
    if let answer = try? PacketAnswer(decoding: body, limits: limits) {
      response.body = .bytes(change(answer).encoded())
    } else {
      response.body = .bytes(spoil(body))
    }
    return response
  }
}
