import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("The memory of answers", .hangLimit)
struct AnswerMemoryTests {
  @Test("a client is stalled when it reads too little for a while")
  func stall() {
    var stall = ReaderStall(1_000, at: .seconds(10))
    // A trickle is no progress.
    let steps: [(UInt64, Int)] = [
      (1_000, 15), (1_000, 16), (60_000, 16), (1_000 + ReaderStall.bytes, 16),
      (1_000 + ReaderStall.bytes, 21), (1_000 + ReaderStall.bytes, 22),
    ]
    var verdicts: [Bool] = []
    for (count, second) in steps {
      verdicts.append(stall.isStalled(count, at: .seconds(second)))
    }
    #expect(verdicts == [false, true, true, false, false, true])
  }

  @Test("answers that nobody reads take no more than their share, and give way to others")
  func slowReaders() async throws {
    let time = Mutex(Duration.seconds(100))
    var configuration = HTTPServer.Configuration(idleTimeout: .seconds(3_600))
    configuration.clock = { time.withLock { $0 } }
    configuration.cutsOffLate = false
    // 24 MiB are for transfers.
    configuration.memory = MemoryBudget(limit: 64 << 20)
    let budget = configuration.memory
    let handler: HTTPHandler = { request in
      let size = request.path == "/large" ? 7 << 20 : 1
      return HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 7, count: size)))
    }
    try await withServer(configuration, handler: handler) { server in
      try await onThread {
        let slow = try (0..<3).map { _ in
          let client = try RawClient(port: server.port)
          try client.send(RawClient.message("GET", "/large"))
          _ = try client.head()
          return client
        }
        #expect(budget.counts.transfers == 21 << 20)
        let honest = try RawClient(port: server.port)
        #expect(try honest.exchange("GET", "/large").status == 503)
        #expect(try honest.exchange("GET", "/small").status == 200)
        server.cutOffLate()
        #expect(budget.counts.transfers == 21 << 20)
        time.withLock { $0 += ReaderStall.period + .seconds(1) }
        server.cutOffLate()
        try block(until: "the answers to be given up") { budget.counts.transfers == 0 }
        #expect(try honest.exchange("GET", "/large").status == 200)
        withExtendedLifetime(slow) {}
      }
    }
  }

  @Test("an account has a quarter of the memory for its answers")
  func account() async throws {
    var configuration = HTTPServer.Configuration()
    configuration.memory = MemoryBudget(limit: 32 << 20)
    let handler: HTTPHandler = { request in
      var answer = HTTPResponse(
        status: 200, body: .bytes([UInt8](repeating: 7, count: 5 << 20)))
      answer.account = request.path
      return answer
    }
    try await withServer(configuration, handler: handler) { server in
      try await onThread {
        let slow = try RawClient(port: server.port)
        try slow.send(RawClient.message("GET", "/mallory"))
        _ = try slow.head()
        let other = try RawClient(port: server.port)
        #expect(try other.exchange("GET", "/mallory").status == 503)
        #expect(try other.exchange("GET", "/alice").status == 200)
      }
    }
  }
}
