import FerryConformance
import FerryHTTPServer
import FerryNetworking
import FerryProtocol

/// A hostile member of a space. Its packets are well-formed, or nearly so, and harm a trusting
/// device. It writes to its own tables, the strays, which oracles leave out. On request it also
/// writes to notes of the others with any kind, value, time and base: the devices have to agree
/// about those. Then it also sends under the identifier of an honest device, which a server without
/// tokens accepts: the honest device takes another one, and loses nothing.
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
  /// True if it writes to tables of the others, and under identifiers of honest devices.
  private let attacks: Bool

  init(
    _ name: String, in space: SpaceName, _ scheduler: Scheduler, trace: Trace,
    server: any ServerEndpoint, limits: Limits, attacks: Bool, random: SeededRandom
  ) {
    (self.name, self.space, self.scheduler, self.trace) = (name, space, scheduler, trace)
    (self.server, self.limits, self.random) = (server, limits, random)
    self.attacks = attacks
    maker = StrangeOperations(random: random, limits: limits)
    device = Workload.strangeDevice(&self.random)
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
      device = Workload.strangeDevice(&random)
    }
    var sender = device
    let path = "/v1/spaces/\(space)"
    guard var head = await head("\(path)/changes?limit=1&device=\(sender)") else { return }
    let mask = attacks && random.chance(1, in: 6) ? await authors(path, head) : []
    if !mask.isEmpty {
      sender = mask[random.below(mask.count)]
      guard let other = await self.head("\(path)/changes?limit=1&device=\(sender)") else { return }
      head = other
    }
    let wall = DeviceClock.start + scheduler.now / 1_000
    let operations = maker.operations(head: head.head, wall: wall, attacks: attacks && mask.isEmpty)
    // A broken chain: the packet waits, or is rejected.
    let dependency =
      random.chance(1, in: 8)
      ? OperationID(UniqueID(timestamp: .zero, random: random.next())) : head.appliedTail
    let packet = Packet(
      device: sender, dependency: dependency, operations: operations,
      continues: random.chance(1, in: 12))
    var body = packet.encoded()
    if random.chance(1, in: 10) { damage(&body) }
    let guise = mask.isEmpty ? "" : " as \(sender)"
    trace.record(.wrote, name, "\(operations.count) hostile operations\(guise)")
    for _ in 0..<(random.chance(1, in: 6) ? 2 : 1) {
      _ = await ask(.post, "\(path)/packets?cursor=\(head.cursor)", body)
    }
  }

  private func head(_ path: String) async -> PageHead? {
    await ask(.get, path).flatMap { try? PageReader.head(of: $0) }
  }

  /// Returns the honest authors of the newest changes, in order.
  private func authors(_ path: String, _ head: PageHead) async -> [DeviceID] {
    let cursor = Cursor(epoch: head.epoch, applied: max(0, head.head - 20))
    guard let page = await ask(.get, "\(path)/changes?limit=20&cursor=\(cursor)") else { return [] }
    var found = Set<DeviceID>()
    _ = page.withUnsafeBytes { bytes in
      Result { () throws(MalformedMessage) in
        try PageReader.read(bytes, limits: limits) { (change) throws(MalformedMessage) in
          found.formUnion(change.state.columns.map(\.stamp.device))
        }
      }
    }
    return found.filter { !Workload.isStrange($0) }.sorted()
  }

  /// Changes a byte, unless it names a table of the others.
  private func damage(_ body: inout [UInt8]) {
    guard !body.isEmpty else { return }
    var damaged = body
    damaged[random.below(body.count)] = UInt8(random.below(256))
    // Another device, or another table, would be of the honest ones.
    if let packet = try? Packet(decoding: damaged, limits: limits),
      !packet.operations.allSatisfy({ Workload.isStray($0.key.table) })
    {
      return
    }
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
