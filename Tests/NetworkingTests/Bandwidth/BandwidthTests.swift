import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryNetworking

/// A clock can prove a lower bound of a duration: a busy machine only makes it longer.
@Suite("Bandwidth limits", .hangLimit)
struct BandwidthTests {
  private static let body = (0..<256 << 10).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  private func transport(receiving: Int? = nil, sending: Int? = nil) -> CurlTransport {
    var configuration = TransportConfiguration()
    configuration.bandwidth = BandwidthLimits(receiving: receiving, sending: sending)
    return CurlTransport(configuration: configuration)
  }

  private func time(_ body: () async throws -> Void) async rethrows -> Duration {
    try await ContinuousClock().measure(body)
  }

  @Test("a limit applies to all received bytes together, streams and whole answers")
  func receiving() async throws {
    let server = RawServer { $0.answer("200 OK", [], Self.body) }
    defer { server.stop() }
    let transport = transport(receiving: 2 << 20)
    let elapsed = try await time {
      try await withThrowingTaskGroup { group in
        for index in 0..<6 {
          group.addTask {
            let request = TransportRequest(.get, server.url("/x"))
            if index % 2 == 0 {
              #expect(try await transport.send(request).body == Self.body)
            } else {
              var body: [UInt8] = []
              for try await part in try await transport.stream(request).body { body += part }
              #expect(body == Self.body)
            }
          }
        }
        try await group.waitForAll()
      }
    }
    // 1.5 MiB at 2 MiB a second; a tenth of a second is free, and the last part is owed.
    #expect(elapsed >= .milliseconds(750 - 100 - 10))
  }

  @Test("a limit applies to all sent bytes together, from memory")
  func sending() async throws {
    let server = RawServer { $0.answer("200 OK", [], $0.body) }
    defer { server.stop() }
    let transport = transport(sending: 2 << 20)
    let elapsed = try await time {
      try await withThrowingTaskGroup { group in
        for method in [TransportMethod.post, .put, .patch, .post] {
          group.addTask {
            let request = TransportRequest(method, server.url("/x"), body: Self.body)
            let response = try await transport.send(request)
            #expect(response.body == Self.body)
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(elapsed >= .milliseconds(500 - 100 - 10))
  }

  @Test("a limit counts transferred bytes, not decompressed ones")
  func decompressed() async throws {
    // 8 MiB of zeros travel as a few hundred bytes: at 64 KiB a second they would take minutes.
    let bomb = CannedBodies.zstdBomb(blocks: 64)
    let server = RawServer { $0.answer("200 OK", ["Content-Encoding: zstd"], bomb) }
    defer { server.stop() }
    let transport = transport(receiving: 64 << 10)
    let response = try await transport.send(
      TransportRequest(.get, server.url("/x"), timeout: .seconds(30)))
    #expect(response.body.count == 8 << 20)
  }

  @Test("waiting for bandwidth does not count as silence")
  func patience() throws {
    let request = TransportRequest(.get, "http://host/x", timeout: .seconds(1))
    let transfer = CurlTransfer(
      request, try RequestAddress(request.url), sink: ResponseCollector(limit: 1), limit: .silence)
    let start = ContinuousClock.now
    #expect(transfer.patience(at: start + .seconds(9)).map { $0 < .zero } == true)
    for reason in [CurlTransfer.Pauses.receiving, .sending, .sink] {
      transfer.pauses = reason
      #expect(transfer.patience(at: start + .seconds(99)) == nil)
      // It counts from the end of the rest on.
      transfer.pauses = []
      #expect(transfer.patience(at: start + .seconds(100)) == .seconds(1))
    }
  }

  @Test("a lifted limit also ends for running transfers")
  func lifting() async throws {
    let server = RawServer { $0.answer("200 OK", [], Self.body) }
    defer { server.stop() }
    // At one byte a second it would take days.
    let transport = transport(receiving: 1)
    let (moved, move) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await transport.send(TransportRequest(.get, server.url("/x"))) {
        if $0.received > 0 { move.yield() }
      }
    }
    for await _ in moved { break }
    transport.limitBandwidth(BandwidthLimits())
    #expect(try await task.value.body == Self.body)
  }

  @Test("a transfer that waits for bandwidth can be cancelled")
  func cancelling() async throws {
    let server = RawServer { $0.answer("200 OK", [], Self.body) }
    defer { server.stop() }
    let transport = transport(receiving: 1)
    let (moved, move) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await transport.send(TransportRequest(.get, server.url("/x"))) {
        if $0.received > 0 { move.yield() }
      }
    }
    for await _ in moved { break }
    task.cancel()
    await #expect { _ = try await task.value } throws: {
      ($0 as? TransportError)?.kind == .cancelled
    }
  }
}
