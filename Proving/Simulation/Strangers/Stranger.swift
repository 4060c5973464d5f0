import FerryConformance
import FerryHTTPServer
import FerryNetworking
import FerryProtocol

/// A hostile member of a space. Its packets are well-formed, or nearly so, and harm a device that trusts
/// them. Oracles leave out its tables, the strays; the devices have to agree about all others.
// SAFETY: touched on the scheduler's thread only.
final class Stranger: @unchecked Sendable {
  private let name: String
  private let scheduler: Scheduler
  private let trace: Trace
  private let server: any ServerEndpoint
  private let space: SpaceName
  private let limits: Limits
  private var random: SeededRandom
  private var maker: StrangeOperations
  private var device: DeviceID
  private var isStopped = false

  init(
    _ name: String, in space: SpaceName, _ scheduler: Scheduler, trace: Trace,
    server: any ServerEndpoint, limits: Limits, random: SeededRandom
  ) {
    (self.name, self.space, self.scheduler, self.trace) = (name, space, scheduler, trace)
    (self.server, self.limits, self.random) = (server, limits, random)
    maker = StrangeOperations(random: random, limits: limits)
    device = DeviceID(UniqueID(timestamp: .zero, random: self.random.next()))
  }

  /// Sends packets until the end of the safety phase, microseconds.
  func start(until end: Int64) {
    scheduler.after(Int64(200_000 + random.below(3_000_000))) { [self] in
      guard !isStopped, scheduler.now < end else { return }
      _ = scheduler.task { [self] in await send() }
      start(until: end)
    }
  }

  /// Stops when the world ends.
  func stop() { isStopped = true }

  // MARK: Requests

  private func send() async {
    // Now and then another member, or the same one twice.
    if random.chance(1, in: 8) {
      device = DeviceID(UniqueID(timestamp: .zero, random: random.next()))
    }
    let device = device
    let path = "/v1/spaces/\(space)"
    guard let page = await ask(.get, "\(path)/changes?limit=1&device=\(device)"),
      let head = try? PageReader.head(of: page)
    else { return }
    let wall = DeviceClock.start + scheduler.now / 1_000
    let operations = maker.operations(head: head.head, wall: wall)
    // A chain that is broken: the packet waits, or is rejected.
    let dependency =
      random.chance(1, in: 8)
      ? OperationID(UniqueID(timestamp: .zero, random: random.next())) : head.appliedTail
    let packet = Packet(
      device: device, dependency: dependency, operations: operations,
      continues: random.chance(1, in: 12))
    var body = packet.encoded()
    if random.chance(1, in: 10) { damage(&body) }
    trace.note(.wrote, name, "\(operations.count) hostile operations")
    for _ in 0..<(random.chance(1, in: 6) ? 2 : 1) {
      _ = await ask(.post, "\(path)/packets?cursor=\(head.cursor)", body)
    }
  }

  /// Changes a byte, unless that names a table of the others.
  private func damage(_ body: inout [UInt8]) {
    guard !body.isEmpty else { return }
    var damaged = body
    damaged[random.below(body.count)] = UInt8(random.below(256))
    let packet = try? Packet(decoding: damaged, limits: limits)
    guard packet?.operations.allSatisfy({ Workload.isStray($0.key.table) }) ?? true else { return }
    body = damaged
  }

  private func ask(
    _ method: TransportMethod, _ path: String, _ body: [UInt8]? = nil
  ) async -> [UInt8]? {
    guard !isStopped, server.generation != nil else { return nil }
    let headers: TransportHeaders = ["Content-Type": "application/json"]
    let request = TransportRequest(
      method, "http://ferry.test" + path, headers: headers, body: body)
    guard let received = HTTPRequest(request, from: name) else { return nil }
    let response = await server.respond(to: received, message: 0)
    guard case .bytes(let answer) = response.body, response.status == 200 else { return nil }
    return answer
  }
}
