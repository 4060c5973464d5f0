import FerryPlatform
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTPServer

/// The turns of users at the socket threads.
@Suite("Turns of answers", .hangLimit)
struct AnswerTurnsTests {
  private static let flooding = 40

  @Test("an answer waits for a few of a flooding user's, and not for all of them")
  func flood() async throws {
    let (gate, arrived, block) = (Gate(), Collector<String>(), ThreadBlock())
    let ended = Collector<String>()
    var configuration = HTTPServer.Configuration(threads: 1).patient
    configuration.answersAtOnce = 1
    configuration.flow = { request, _ in WorkFlow(user: request?.path ?? "") }
    configuration.onComplete = { exchange in
      // Holds the only socket thread.
      if exchange.path == "/block" { block.wait() } else { ended.add(exchange.path) }
    }
    let handler: HTTPHandler = { request in
      guard request.path != "/block" else { return .text("") }
      arrived.add(request.path)
      await gate.wait()
      return .text(request.path)
    }
    try await withServer(configuration, handler: handler) { server in
      try await withThrowingTaskGroup(of: Void.self) { group in
        func send(_ path: String) {
          group.addTask {
            let answer = try await onThread {
              try RawClient(port: server.port).exchange("GET", path)
            }
            #expect(answer.text == (path == "/block" ? "" : path))
          }
        }
        for number in 0...Self.flooding { send(number == Self.flooding / 2 ? "/quiet" : "/flood") }
        _ = await arrived.values(Self.flooding + 1)
        send("/block")
        try await eventually("the socket thread is blocked") { block.isWaiting }
        gate.open()
        try await eventually("all answers but one wait") {
          server.waitingAnswers == Self.flooding
        }
        block.end()
        try await group.waitForAll()
      }
      let order = await ended.values(Self.flooding + 1)
      let before = try #require(order.firstIndex(of: "/quiet"))
      #expect(before <= 2, "\(before) answers were sent before")
    }
  }

  @Test(
    "a server that stops sends the waiting answers, or without patience ends their wait",
    arguments: [Duration.hangLimit, .zero])
  func stopping(grace: Duration) async throws {
    let (gate, arrived, block) = (Gate(), Collector<Int>(), ThreadBlock())
    var configuration = HTTPServer.Configuration(threads: 1).patient
    configuration.answersAtOnce = 1
    configuration.onComplete = { if $0.path == "/block" { block.wait() } }
    let server = try HTTPServer(configuration: configuration) { request in
      guard request.path != "/block" else { return .text("") }
      arrived.add(1)
      await gate.wait()
      return .text(request.path)
    }
    /// Returns the answer; `nil` if the connection was closed without a whole one.
    func send(_ path: String) -> Task<String?, any Error> {
      Task {
        try await onThread {
          try? RawClient(port: server.port).exchange("GET", path).text
        }
      }
    }
    let clients = (0..<Self.flooding).map { send("/\($0)") }
    _ = await arrived.values(Self.flooding)
    _ = send("/block")
    try await eventually("the socket thread is blocked") { block.isWaiting }
    gate.open()
    try await eventually("all answers but one wait") {
      server.waitingAnswers == Self.flooding - 1
    }
    let stopping = Task { await server.stop(grace: grace) }
    try await eventually("the server stops") {
      try await onThread { (try? RawClient(port: server.port)) == nil }
    }
    block.end()
    await stopping.value
    for (number, client) in clients.enumerated() {
      let answer = try await client.value
      #expect(answer == "/\(number)" || grace == .zero && answer == nil)
    }
    try await eventually("no answer waits") { server.waitingAnswers == 0 }
  }
}
