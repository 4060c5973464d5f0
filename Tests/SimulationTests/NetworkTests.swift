import FerryConformance
import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerrySimulation

/// The simulated network between one device and a server that handles every request.
@Suite(.hangLimit)
struct NetworkTests {
  @Test("a message arrives after its delay, and so does its answer")
  func arrives() throws {
    let field = NetworkField(delays: 10...20)
    let answer = try field.exchange().get()
    #expect(answer.status == 200 && answer.body == NetworkField.answer)
    #expect(field.server.received == 1)
    #expect((20_000...40_000).contains(field.scheduler.now))
    #expect(field.trace.counts[.sent] == 2 && field.trace.counts[.delivered] == 2)
  }

  @Test("a cut link passes nothing, and a repaired one does")
  func cut() throws {
    let field = NetworkField()
    for direction in [NetworkLink.Direction.up, .down] { field.link.cut(direction) }
    #expect(field.exchange().failure == .timedOut)
    #expect(field.server.received == 0)
    field.link.mendAll()
    #expect(try field.exchange().get().status == 200)
  }

  @Test("a link that is cut one way passes requests and loses answers, or passes nothing")
  func oneWay() throws {
    let field = NetworkField()
    field.link.cut(.down)
    #expect(field.exchange().failure == .timedOut)
    #expect(field.server.received == 1)
    field.link.repair(.down)
    field.link.cut(.up)
    #expect(field.exchange().failure == .timedOut)
    #expect(field.server.received == 1)
    // Cuts overlap: one of two is not all.
    field.link.cut(.up)
    field.link.repair(.up)
    #expect(field.link.isCut(.up) && !field.link.isCut(.down))
  }

  @Test("a duplicated request arrives twice, and is answered once")
  func duplicate() throws {
    let field = NetworkField([.duplicate: 1_000_000])
    #expect(try field.exchange().get().status == 200)
    _ = field.scheduler.run(limit: 1_000) { false }
    #expect(field.server.received == 2)
  }

  @Test("a lost message, or a missing answer, ends in a time-out")
  func lost() {
    for (kind, received) in [(ChanceFault.drop, 0), (.stall, 1)] {
      let field = NetworkField([kind: 1_000_000])
      #expect(field.exchange().failure == .timedOut)
      #expect(field.server.received == received)
      #expect(field.scheduler.now == 5_000_000)
    }
  }

  @Test("a reset connection is interrupted, and an absent process refuses it")
  func broken() {
    let reset = NetworkField([.reset: 1_000_000])
    #expect(reset.exchange().failure == .interrupted)
    let absent = NetworkField()
    absent.server.generation = nil
    #expect(absent.exchange().failure == .offline)
  }

  @Test("the answer of a process that has died meanwhile is lost")
  func died() {
    let field = NetworkField()
    field.server.diesAnswering = true
    #expect(field.exchange().failure == .interrupted)
    #expect(field.server.received == 1)
  }

  @Test("a slow answer arrives seconds later")
  func slow() throws {
    let field = NetworkField([.slow: 1_000_000], timeout: .seconds(60))
    #expect(try field.exchange().get().status == 200)
    #expect(field.scheduler.now >= 1_000_000)
  }

  @Test("a corrupt body is never the body that was sent, nor JSON")
  func corrupt() throws {
    var seen = Set<[UInt8]>()
    let field = NetworkField([.corrupt: 1_000_000])
    for _ in 0..<40 {
      let body = try field.exchange().get().body
      #expect(body != NetworkField.answer)
      seen.insert(body)
    }
    #expect(seen.count > 5)
  }

  @Test("an exchange ends at once when its task is cancelled")
  func cancelled() {
    let field = NetworkField()
    field.link.cut(.up)
    var failure: TransportError.Kind?
    let task = field.start { failure = $0.failure }
    field.scheduler.after(1_000) { task.cancel() }
    _ = field.scheduler.run(limit: 1_000) { failure != nil }
    #expect(failure == .cancelled)
    #expect(field.scheduler.now == 1_000)
  }
}

/// A device, a link and a server.
// SAFETY: used on the test's thread only, on which everything runs.
private final class NetworkField: @unchecked Sendable {
  static let answer = Array("{\"well\":\"received\"}".utf8)

  let scheduler = Scheduler()
  let trace: Trace
  let link: NetworkLink
  let server = AnsweringServer()
  private let network: SimulatedNetwork
  private let timeout: Duration

  init(
    _ ratios: [ChanceFault: Int] = [:], delays: ClosedRange<Int> = 1...5,
    timeout: Duration = .seconds(5)
  ) {
    trace = Trace(scheduler, keepsEvents: false)
    link = NetworkLink(device: "device-00", random: SeededRandom(1), delays: delays)
    network = SimulatedNetwork(
      scheduler, dice: FaultDice(seed: 1, ratios: ratios), trace: trace, server: server)
    self.timeout = timeout
  }

  /// Performs one exchange from beginning to end.
  func exchange() -> Result<TransportResponse, TransportError> {
    var result: Result<TransportResponse, TransportError>?
    start { result = $0 }
    _ = scheduler.run(limit: 10_000) { result != nil }
    return result ?? .failure(TransportError(.other, "it never ended"))
  }

  @discardableResult
  func start(
    _ done: @escaping (Result<TransportResponse, TransportError>) -> Void
  ) -> Task<Void, Never> {
    let transport = SimulatedTransport(network, link: link)
    let request = TransportRequest(
      .post, "http://ferry.test/v1/spaces/a/packets", body: Array("{}".utf8), timeout: timeout)
    let end = Completion(done)
    return scheduler.task {
      do throws(TransportError) {
        end.call(.success(try await transport.send(request)))
      } catch {
        end.call(.failure(error))
      }
    }
  }
}

/// The test's use of the result.
// SAFETY: used on the test's thread only.
private final class Completion: @unchecked Sendable {
  let call: (Result<TransportResponse, TransportError>) -> Void
  init(_ call: @escaping (Result<TransportResponse, TransportError>) -> Void) { self.call = call }
}

// SAFETY: used on the test's thread only.
private final class AnsweringServer: ServerEndpoint, @unchecked Sendable {
  var generation: Int? = 1
  var received = 0
  var diesAnswering = false

  func respond(to request: HTTPRequest, message: Int) async -> HTTPResponse {
    received += 1
    if diesAnswering { generation = nil }
    return HTTPResponse(status: 200, body: .bytes(NetworkField.answer))
  }
}

extension Result where Failure == TransportError {
  fileprivate var failure: TransportError.Kind? {
    guard case .failure(let error) = self else { return nil }
    return error.kind
  }
}
