import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The service behind the real HTTP server, over the store double.
@Suite(.hangLimit)
struct ServiceLiveTests {
  let store = ServiceStoreDouble(spaces: ["notes"])

  func serve(
    heartbeat: Duration = .seconds(15), _ body: (FerryServer, UInt16) async throws -> Void
  ) async throws {
    var configuration = ServiceStartTests.configuration()
    configuration.heartbeat = heartbeat
    let server = try await FerryServer.start(configuration, store: store)
    do {
      try await body(server, server.port)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test("a packet sent over HTTP is visible in the space's head")
  func roundTrip() async throws {
    try await serve { _, port in
      let made = try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/fresh")
      #expect(made.status == 200)
      let packet = Packet.serviceSample(1, operations: 3).encoded()
      let posted = try await ServiceSocket.exchange(
        port, "POST", "/v1/spaces/fresh/packets", body: packet)
      #expect(posted.status == 200)
      let info = try await ServiceSocket.exchange(port, "GET", "/v1/spaces/fresh")
      #expect(try SpaceInfo(decoding: info.body).head == 3)
      let head = try await ServiceSocket.exchange(port, "HEAD", "/v1/spaces/fresh")
      #expect(head.status == 200)
      #expect(head.body.isEmpty)
    }
  }

  @Test("a listener receives the head at once, then each move, then heartbeats")
  func events() async throws {
    try await serve(heartbeat: .milliseconds(50)) { _, port in
      let socket = try ServiceSocket(port: port)
      try await socket.send("GET", "/v1/spaces/notes/events")
      let start = try await socket.read(until: "id: 0\nevent: head\ndata: ")
      #expect(start.contains("text/event-stream"))
      _ = try await ServiceSocket.exchange(
        port, "POST", "/v1/spaces/notes/packets",
        body: Packet.serviceSample(1, operations: 5).encoded())
      _ = try await socket.read(until: #"data: {"epoch":"0000000000000007","head":"5"}"#)
      _ = try await socket.read(until: ":\n\n")
      let again = try ServiceSocket(port: port)
      try await again.send(
        "GET", "/v1/spaces/notes/events", headers: ["Last-Event-ID": "5"])
      let quiet = try await again.read(until: ":\n\n")
      #expect(!quiet.contains("event: head"))
    }
  }

  @Test("stopping ends the streams, and a packet that is being committed gets its answer")
  func stops() async throws {
    var configuration = ServiceStartTests.configuration()
    configuration.stopGrace = .hangLimit
    let server = try await FerryServer.start(configuration, store: store)
    let stream = try ServiceSocket(port: server.port)
    try await stream.send("GET", "/v1/spaces/notes/events")
    _ = try await stream.read(until: "event: head")
    store.hold()
    let port = server.port
    async let posted = ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(1).encoded())
    await store.waitUntilHeld()
    let stopping = Task { await server.stop() }
    _ = try await stream.readToEnd()
    #expect(!store.state.withLock { $0.isClosed })
    store.release()
    #expect(try await posted.status == 200)
    await stopping.value
    #expect(store.state.withLock { $0.isClosed })
    #expect(throws: (any Error).self) { try ServiceSocket(port: port) }
  }

  @Test("a body that is too large, compressed or decompressed, is refused with a problem")
  func tooLarge() async throws {
    try await serve { _, port in
      let target = "/v1/spaces/notes/packets"
      let large = try await ServiceSocket.exchange(
        port, "POST", target, headers: ["Content-Length": "999999999"])
      #expect(large.status == 413)
      #expect(Problem(decoding: large.body)?.code == .limitExceeded)
      for bomb in [Self.zstdBomb(mebibytes: 64, tellsSize: true), Self.zstdBomb(mebibytes: 64)] {
        #expect(bomb.count < 5_000)
        let answer = try await ServiceSocket.exchange(
          port, "POST", target, headers: ["Content-Encoding": "zstd"], body: bomb)
        #expect(answer.status == 413)
        #expect(Problem(decoding: answer.body)?.code == .limitExceeded)
      }
      let coded = try await ServiceSocket.exchange(
        port, "POST", target, headers: ["Content-Encoding": "br"], body: [1, 2, 3])
      #expect(Problem(decoding: coded.body)?.code == .unsupportedCoding)
      let broken = try await ServiceSocket.exchange(
        port, "POST", target, headers: ["Content-Encoding": "gzip"], body: [1, 2, 3])
      #expect(Problem(decoding: broken.body)?.code == .malformedMessage)
      #expect(store.state.withLock { $0.batches.isEmpty })
    }
  }

  @Test("unknown addresses, methods and targets are answered with problem documents")
  func refusals() async throws {
    try await serve { _, port in
      let nowhere = try await ServiceSocket.exchange(port, "GET", "/nothing")
      #expect(nowhere.status == 404)
      #expect(nowhere.headers["content-type"] == "application/problem+json")
      let wrong = try await ServiceSocket.exchange(port, "DELETE", "/v1/spaces/notes")
      #expect(wrong.status == 405)
      #expect(wrong.headers["allow"] == "GET, HEAD, PUT")
      let target = try await ServiceSocket.exchange(port, "GET", "/v1/spaces/%zz")
      #expect(Problem(decoding: target.body)?.code == .malformedMessage)
      let page = try await ServiceSocket.exchange(
        port, "GET", "/v1/spaces/notes", headers: ["Origin": "https://evil.example"])
      #expect(page.status == 403)
      let rebound = try await ServiceSocket.exchange(
        port, "GET", "/v1/spaces/notes", headers: ["Host": "evil.example"])
      #expect(rebound.status == 403)
    }
  }

  @Test("an idle stream is forgotten at the next heartbeat after its client has left")
  func forgetsListeners() async throws {
    try await serve(heartbeat: .milliseconds(20)) { _, port in
      do {
        let socket = try ServiceSocket(port: port)
        try await socket.send("GET", "/v1/spaces/notes/events")
        _ = try await socket.read(until: "event: head")
      }
      try await eventually("no listener") {
        let page = try await ServiceSocket.exchange(port, "GET", "/metrics").text
        return page.contains("ferry_event_listeners 0")
      }
    }
  }

  /// Returns a frame of RLE blocks (RFC 8878 §3.1.1.2), 128 KiB of zeros in four bytes each.
  static func zstdBomb(mebibytes: Int, tellsSize: Bool = false) -> [UInt8] {
    var frame: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    if tellsSize {
      // Single segment, with the content's size in four bytes.
      frame.append(0xA0)
      withUnsafeBytes(of: UInt32(mebibytes << 20).littleEndian) { frame.append(contentsOf: $0) }
    } else {
      // A window of 1 MiB, and no word of the size.
      frame += [0x00, 0x50]
    }
    let blocks = mebibytes * 8
    for index in 0..<blocks {
      let header = UInt32(128 << 10) << 3 | 1 << 1 | (index == blocks - 1 ? 1 : 0)
      frame += [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16 & 0xFF), 0]
    }
    return frame
  }
}
