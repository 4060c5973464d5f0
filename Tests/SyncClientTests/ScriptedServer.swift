import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Synchronization

@testable import FerrySyncClient

/// A server in memory: takes every packet, reports the head, and follows a test's rules.
final class ScriptedServer: Transport {
  /// A test's replacement of a response; `nil` lets the server respond.
  typealias Rule = @Sendable (_ request: TransportRequest, _ number: Int) -> TransportResponse?

  /// A test's event streams.
  typealias Streams =
    @Sendable (_ request: TransportRequest) throws(TransportError) -> TransportStream

  private struct State {
    var head: SequenceNumber = 0
    var tails: [String: OperationID] = [:]
    var operations: [SyncOperation] = []
    var requests: [TransportRequest] = []
    var streams = 0
  }

  private let state = Mutex(State())
  private let rule: Rule
  /// Headers of all of the server's own answers.
  private let headers: TransportHeaders
  private let streams: Streams?

  init(
    headers: TransportHeaders = [:], _ rule: @escaping Rule = { _, _ in nil },
    streams: Streams? = nil
  ) {
    (self.headers, self.rule, self.streams) = (headers, rule, streams)
  }

  /// The operations sent by devices.
  var operations: [SyncOperation] { state.withLock { $0.operations } }
  var requests: [TransportRequest] { state.withLock { $0.requests } }
  /// The number of requests for event streams.
  var streamRequests: Int { state.withLock { $0.streams } }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let number = state.withLock { state in
      state.requests.append(request)
      return state.requests.count
    }
    if let answer = rule(request, number) { return answer }
    var answer = answer(to: request)
    for field in headers.fields { answer.headers.add(field.name, field.value) }
    return answer
  }

  private func answer(to request: TransportRequest) -> TransportResponse {
    if request.url.contains("/packets") { return take(request.body ?? []) }
    if request.url.contains("/records") { return records(request.body ?? []) }
    if request.url.contains("/changes") { return page(for: request.url) }
    return space()
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    state.withLock { $0.streams += 1 }
    guard let streams else { throw TransportError(.offline, "no streams") }
    return try streams(request)
  }

  static func json(_ body: [UInt8], status: Int = 200) -> TransportResponse {
    TransportResponse(
      status: status, headers: ["Content-Type": "application/json"], body: body)
  }

  static func webPage(_ status: Int, _ title: String) -> TransportResponse {
    TransportResponse(
      status: status, headers: ["Content-Type": "text/html"],
      body: Array("<html><head><title>\(title)</title></head><body>x</body></html>".utf8))
  }

  private func space() -> TransportResponse {
    guard let name = SpaceName("demo") else { return Self.json([], status: 500) }
    let info = SpaceInfo(
      space: name, epoch: PageMaker().epoch, head: state.withLock { $0.head }, role: .writer,
      serverTime: 0)
    return Self.json(info.encoded())
  }

  private func page(for url: String) -> TransportResponse {
    let device = url.split(separator: "device=").last.map { String($0.prefix(36)) } ?? ""
    let (head, tail) = state.withLock { ($0.head, $0.tails[device]) }
    return Self.json(PageMaker().page([], head: head, tail: tail).body)
  }

  private func records(_ body: [UInt8]) -> TransportResponse {
    let keys = (try? RecordsRequest(decoding: body, limits: .standard))?.keys ?? []
    let changes = keys.map { PageMaker().deletion(0, $0.table, $0.record) }
    return Self.json(PageMaker().page(changes, head: state.withLock { $0.head }).body)
  }

  private func take(_ body: [UInt8]) -> TransportResponse {
    guard let packet = try? Packet(decoding: body, limits: .standard),
      let tail = packet.operations.last?.id
    else { return Self.json(Problem(.malformedMessage, "no packet").encoded(), status: 400) }
    let (first, last) = state.withLock { state in
      let first = state.head + 1
      state.head += SequenceNumber(packet.operations.count)
      state.tails["\(packet.device)"] = tail
      state.operations += packet.operations
      return (first, state.head)
    }
    let receipt = PacketReceipt(
      tail: tail, status: .applied, sequences: first...last,
      outcomes: packet.operations.map { _ in .applied },
      historyHashBefore: PageMaker.historyHash(at: first - 1),
      historyHash: PageMaker.historyHash(at: last),
      timeline: PageMaker.timeline(at: last))
    return Self.json(
      PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: last, serverTime: 0)
        .encoded())
  }

  /// Returns a replica with a table of notes, connected to this server.
  func replica(in directory: TemporaryDirectory) async throws -> Replica {
    var surroundings = ReplicaSurroundings.system
    surroundings.sleep = { _ in }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: self, in: surroundings)
    try await replica.write {
      try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    }
    try await replica.track("notes")
    try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    return replica
  }

  /// Returns such a replica that may watch the server: pauses take their time.
  func watchedReplica(in directory: TemporaryDirectory) async throws -> Replica {
    let replica = try await replica(in: directory)
    await replica.close()
    return try await Replica.open(replica.path, transport: self, in: .system)
  }
}
