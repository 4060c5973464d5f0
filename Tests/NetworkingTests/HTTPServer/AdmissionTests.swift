import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("Admission before content", .hangLimit)
struct AdmissionTests {
  static func refusal(_ status: Int) -> HTTPResponse { .text("no", status: status) }

  func configuration(
    _ admission: @escaping @Sendable (HTTPArrival) -> HTTPAdmission
  ) -> HTTPServer.Configuration {
    var configuration = HTTPServer.Configuration(bodyLimit: 8 << 20)
    configuration.admission = admission
    return configuration
  }

  @Test("a refused request is answered before its content is sent or requested")
  func refusedEarly() async throws {
    let handled = Collector<String>()
    let configuration = configuration { arrival in
      #expect(arrival.declaredLength == 5_000_000)
      return .refuse(Self.refusal(403))
    }
    let handler: HTTPHandler = { request in
      handled.add(request.path)
      return .text("handled")
    }
    try await withServer(configuration, handler: handler) { server in
      try await onThread {
        for expectation in ["", "Expect: 100-continue\r\n"] {
          let client = try RawClient(port: server.port)
          try client.send(
            "POST /a HTTP/1.1\r\nHost: t\r\n\(expectation)Content-Length: 5000000\r\n\r\n")
          #expect(try client.response().status == 403)
        }
      }
    }
    #expect(handled.count == 0)
  }

  @Test("small content of a refused request is discarded, and the connection stays open")
  func refusedSmall() async throws {
    let configuration = configuration {
      $0.request.path == "/no" ? .refuse(Self.refusal(403)) : .proceed(limit: 100)
    }
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        for _ in 0..<3 {
          let body = [UInt8](repeating: 1, count: 60_000)
          #expect(try client.exchange("POST", "/no", body: body).status == 403)
          #expect(try client.exchange("POST", "/yes", body: [1]).text == "POST /yes 1")
        }
      }
    }
  }

  @Test("a decision can take time; 100 Continue waits for it")
  func decides() async throws {
    let gate = Gate()
    let configuration = configuration { _ in
      .decide {
        await gate.wait()
        return .proceed(limit: 10)
      }
    }
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        let asking = try RawClient(port: server.port)
        try asking.send(
          "POST /a HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        let eager = try RawClient(port: server.port)
        try eager.send(RawClient.message("POST", "/b", body: [1, 2]))
        // Others are served meanwhile.
        #expect(try RawClient(port: server.port).exchange("GET", "/c").text == "GET /c 0")
        gate.open()
        #expect(try asking.response(hasBody: false).status == 100)
        try asking.send("abc")
        #expect(try asking.response().text == "POST /a 3")
        #expect(try eager.response().text == "POST /b 2")
        #expect(
          try eager.exchange("POST", "/big", body: [UInt8](repeating: 1, count: 11)).status == 413)
      }
    }
  }

  @Test("a server that stops during a decision closes the connection")
  func stopsWhileDeciding() async throws {
    let gate = Gate()
    let begun = Gate()
    let configuration = configuration { _ in
      .decide {
        begun.open()
        await gate.wait()
        return .proceed(limit: 10)
      }
    }
    let server = try HTTPServer(configuration: configuration, handler: describe)
    let client = try RawClient(port: server.port)
    try client.send(RawClient.message("POST", "/b", body: [1, 2]))
    await begun.wait()
    await server.stop(grace: .zero)
    gate.open()
    #expect(throws: (any Error).self) { try client.response() }
  }

  @Test("a route without content accepts none, chunked or not")
  func noContent() async throws {
    try await withServer(configuration { _ in .proceed(limit: 0) }, handler: describe) { server in
      try await onThread {
        let plain = try RawClient(port: server.port)
        #expect(try plain.exchange("GET", "/a").status == 200)
        #expect(try plain.exchange("GET", "/a", body: []).status == 200)
        #expect(try plain.exchange("GET", "/a", body: [1]).status == 413)
        let chunked = try RawClient(port: server.port)
        try chunked.send(
          "GET / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        #expect(try chunked.response().status == 413)
      }
    }
  }

  @Test("the contents of all requests use no more memory than their budget")
  func memory() async throws {
    let gate = Gate()
    let arrived = Mutex(0)
    let all = Gate()
    let handler: HTTPHandler = { request in
      if request.path == "/a" {
        let count = arrived.withLock { arrived in
          arrived += 1
          return arrived
        }
        if count == 3 { all.open() }
        await gate.wait()
      }
      return .text("\(request.body.count)")
    }
    var configuration = HTTPServer.Configuration(bodyLimit: 1 << 20)
    configuration.memory = MemoryBudget(limit: 8 << 20)
    let budget = configuration.memory
    try await withServer(configuration, handler: handler) { server in
      let body = [UInt8](repeating: 7, count: 1 << 20)
      // Used by one thread after another.
      nonisolated(unsafe) var clients: [RawClient] = []
      try await onThread {
        for _ in 0..<3 {
          let client = try RawClient(port: server.port)
          try client.send(RawClient.message("POST", "/a", body: body))
          clients.append(client)
        }
      }
      await all.wait()
      #expect(budget.used == 3 << 20)
      try await onThread {
        let fourth = try RawClient(port: server.port)
        try fourth.send(RawClient.message("POST", "/b", body: body))
        #expect(try fourth.response().status == 503)
        let small = try RawClient(port: server.port)
        #expect(try small.exchange("POST", "/b", body: [1]).text == "1")
      }
      gate.open()
      try await onThread {
        for client in clients {
          let answer = try client.response()
          #expect(answer.text == "1048576")
        }
        let again = try clients[0].exchange("POST", "/b", body: body)
        #expect(again.status == 200)
      }
    }
    // A client may have the answer before the request is released.
    try await eventually("the budget to be free") { budget.used == 0 }
  }

  @Test("clients that trickle headers or content are disconnected, and others are not")
  func late() async throws {
    let time = Mutex(Duration.seconds(100))
    var configuration = HTTPServer.Configuration(idleTimeout: .seconds(3_600))
    configuration.clock = { time.withLock { $0 } }
    configuration.cutsOffLate = false
    configuration.pace = TransferPace(
      headers: .seconds(10), grace: .seconds(60), bytesPerSecond: 1)
    let gate = Gate()
    let handling = Gate()
    let handler: HTTPHandler = { request in
      if request.path == "/slow" {
        handling.open()
        await gate.wait()
      }
      return .text("done")
    }
    try await withServer(configuration, handler: handler) { server in
      // Used by one thread after another.
      nonisolated(unsafe) let slow = try RawClient(port: server.port)
      try slow.send(RawClient.message("GET", "/slow"))
      await handling.wait()
      try await onThread {
        let headers = try RawClient(port: server.port)
        try headers.send("GET / HTTP/1.1\r\nHost: t\r\nX: ")
        let content = try RawClient(port: server.port)
        let message =
          "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 200\r\n\r\n"
        try content.send(message)
        #expect(try content.response(hasBody: false).status == 100)
        let steady = try RawClient(port: server.port)
        try steady.send(message)
        #expect(try steady.response(hasBody: false).status == 100)
        let idle = try RawClient(port: server.port)
        #expect(try idle.exchange("GET", "/").text == "done")

        time.withLock { $0 += .seconds(11) }
        server.cutOffLate()
        #expect(throws: (any Error).self) { try headers.response() }
        #expect(try idle.exchange("GET", "/").text == "done")
        try steady.send([UInt8](repeating: 1, count: 200))
        #expect(try steady.response().text == "done")
        time.withLock { $0 += .seconds(50) }
        server.cutOffLate()
        #expect(throws: (any Error).self) { try content.response() }
        #expect(server.load.late >= 2)
      }
      gate.open()
      let answer = try await onThread { try slow.response().text }
      #expect(answer == "done")
    }
  }

  @Test("a full server closes the connection that waits the longest for its client, and serves on")
  func givingWay() async throws {
    var configuration = HTTPServer.Configuration(bodyLimit: 1 << 20).patient
    configuration.connectionLimit = 3
    let ended = DispatchSemaphore(value: 0)
    configuration.onComplete = { _ in ended.signal() }
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        let halfContent = try RawClient(port: server.port)
        try halfContent.send("POST /c HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n")
        try halfContent.send("Content-Length: 2\r\n\r\n")
        #expect(try halfContent.response(hasBody: false).status == 100)
        let halfHeaders = try RawClient(port: server.port)
        try halfHeaders.send("GET /h HTTP/1.1\r\nHost: t\r\n")
        let idle = try RawClient(port: server.port)
        #expect(try idle.exchange("GET", "/i").status == 200)
        // A client may have the answer before the connection is idle.
        ended.wait()
        var later: [RawClient] = []
        for count in 1...20 {
          let client = try RawClient(port: server.port)
          #expect(try client.exchange("GET", "/\(count)").status == 200)
          ended.wait()
          later.append(client)
          // The idle connections of this loop give way to each other.
          if count == 1 { #expect(try idle.isCutOff()) }
        }
        for client in later.dropLast() { #expect(try client.isCutOff()) }
        try halfHeaders.send("\r\n")
        #expect(try halfHeaders.response().text == "GET /h 0")
        try halfContent.send("ab")
        #expect(try halfContent.response().text == "POST /c 2")
        #expect(server.load.evicted == 20)
      }
    }
  }

  @Test("idle and half-sent connections of strangers never keep out another client")
  func floods() async throws {
    var configuration = HTTPServer.Configuration(bodyLimit: 1 << 20).patient
    configuration.connectionLimit = 64
    configuration.admission = { _ in .refuse(Self.refusal(401)) }
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        var strangers: [RawClient] = []
        for text in [
          "", "GET", "GET / HTTP/1.1\r\nHost: t\r\n",
          "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n1",
        ] {
          for _ in 0..<100 {
            let stranger = try RawClient(port: server.port)
            try? stranger.send(text)
            strangers.append(stranger)
          }
          let client = try RawClient(port: server.port)
          #expect(try client.exchange("GET", "/a").status == 200)
        }
      }
    }
  }

  @Test("when all connections are in use, reserved ones still serve one request each")
  func reserve() async throws {
    let gate = Gate()
    let waiting = DispatchSemaphore(value: 0)
    let handler: HTTPHandler = { request in
      if request.path == "/wait" {
        waiting.signal()
        await gate.wait()
      }
      return await describe(request)
    }
    var configuration = configuration { arrival in
      guard arrival.isOnReserve, arrival.request.path != "/healthz" else {
        return .proceed(limit: 100)
      }
      return .refuse(Self.refusal(503))
    }
    configuration.connectionLimit = 3
    configuration.connectionReserve = 2
    try await withServer(configuration, handler: handler) { server in
      try await onThread {
        let taken = try (0..<3).map { _ in try RawClient(port: server.port) }
        for client in taken {
          try client.send(RawClient.message("GET", "/wait"))
          waiting.wait()
        }
        for _ in 0..<4 {
          let probe = try RawClient(port: server.port)
          let answer = try probe.exchange("GET", "/healthz")
          #expect(answer.text == "GET /healthz 0")
          #expect(answer.headers["connection"] == "close")
          let other = try RawClient(port: server.port)
          #expect(try other.exchange("POST", "/a", body: [1, 2]).status == 503)
          #expect(try other.isClosedByPeer())
        }
        gate.open()
        for client in taken { #expect(try client.response().status == 200) }
        #expect(server.load.connections >= 3)
      }
    }
  }
}
