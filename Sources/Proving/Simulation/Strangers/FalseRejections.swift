import FerryConformance
import FerryHTTPServer
import FerryProtocol

/// Draws a hostile server's rejections: each status, with a problem document, a web page or
/// nothing, and with each kind of `Retry-After`.
struct FalseRejections {
  /// The possible effect of a rejection on a device.
  enum Reach {
    /// The request fails.
    case requests
    /// Operations may leave the queue, or the device may take another identifier.
    case packets
  }

  private static let statuses = [
    300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412,
    413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502,
    503, 504, 505, 507, 508, 511, 599,
  ]

  /// Those after which a device neither cuts packets again nor takes operations out of the queue.
  private static let harmless = [401, 404, 405, 408, 429, 500, 502, 503, 504]

  private var random: SeededRandom

  init(random: SeededRandom) { self.random = random }

  mutating func next(_ reach: Reach, _ packet: Packet?) -> HTTPResponse {
    if random.chance(1, in: 2) { return problem(reach, packet) }
    let statuses = reach == .packets || packet == nil ? Self.statuses : Self.harmless
    var response = HTTPResponse(status: statuses[random.below(statuses.count)])
    switch random.below(4) {
    case 0: response.body = .bytes([])
    case 1: response.body = .bytes(Array("{\"code\":7,\"detail\":[]}".utf8))
    case 2: response.body = .bytes(Array("no \u{0} words".utf8))
    default:
      response.headers["Content-Type"] = "text/html"
      response.body = .bytes(Array("<html><title>Sign in</title></html>".utf8))
    }
    if (300..<400).contains(response.status) {
      response.headers["Location"] =
        random.chance(1, in: 2) ? "http://elsewhere.test/v1" : "/v1/spaces/other/changes"
    }
    addPause(&response)
    return response
  }

  private mutating func problem(_ reach: Reach, _ packet: Packet?) -> HTTPResponse {
    let codes = ProblemCode.allCases.filter { reach == .packets || !$0.changesQueue }
    let code = codes[random.below(codes.count)]
    var refusals: [Refusal] = []
    if code == .operationRefused, let packet, random.chance(2, in: 3) {
      let named = packet.operations[random.below(packet.operations.count)]
      let known = RefusalCode.known
      refusals.append(
        Refusal(
          operation: random.chance(3, in: 4)
            ? named.id : OperationID(UniqueID(timestamp: .zero, random: random.next())),
          code: known[random.below(known.count)], detail: "no", table: named.key.table,
          record: named.key.record))
    }
    var response = HTTPResponse(status: code.status)
    response.headers["Content-Type"] = "application/problem+json"
    response.body = .bytes(Problem(code, "a lie", refusals: refusals).encoded())
    addPause(&response)
    return response
  }

  private mutating func addPause(_ response: inout HTTPResponse) {
    let pauses = ["0", "1", "3", "11", "999999999999", "-1", "Fri, 31 Dec 1999 23:59:59 GMT", "x"]
    if random.chance(1, in: 2) { response.headers["Retry-After"] = pauses[random.below(8)] }
  }
}

extension ProblemCode {
  /// True if a device takes operations out of the queue, or another identifier.
  fileprivate var changesQueue: Bool {
    switch self {
    case .operationRefused, .malformedMessage, .limitExceeded, .storageQuota, .deviceForked,
      .deviceTaken:
      true
    default: false
    }
  }
}
