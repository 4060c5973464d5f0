import Dispatch
import FerryCompression
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("The HTTP server", .hangLimit)
struct HTTPServerTests {
  @Test("a request reaches the handler whole, and its answer reaches the client whole")
  func happyPath() async throws {
    let requests = Collector<HTTPRequest>()
    let handler: HTTPHandler = { request in
      requests.add(request)
      return HTTPResponse(status: 201, headers: ["X-Answer": "yes"], body: .bytes([1, 2, 3]))
    }
    try await withServer(handler: handler) { server in
      let response = try await onThread {
        try RawClient(port: server.port).exchange(
          "PUT", "/v1/a%2Fb?x=y%20z", headers: ["X-Ask": "why"], body: [9, 8, 7])
      }
      #expect(response.status == 201)
      #expect(response.headers["x-answer"] == "yes")
      #expect(response.headers["content-length"] == "3")
      #expect(response.headers["date"] != nil)
      #expect(response.body == [1, 2, 3])
      let request = try #require(await requests.values(1).first)
      #expect(request.method == "PUT")
      #expect(request.path == "/v1/a%2Fb")
      #expect(request.segments == ["v1", "a/b"])
      #expect(request.query == ["x": "y z"])
      #expect(request.headers["x-ask"] == "why")
      #expect(request.body == [9, 8, 7])
      #expect(request.bodyWireBytes == 3)
      #expect(request.remoteAddress == "127.0.0.1")
    }
  }

  @Test("one connection serves many requests, pipelined ones included")
  func keepAlive() async throws {
    try await withServer(handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        for index in 0..<200 {
          let body = [UInt8](repeating: 0, count: index * 37)
          let response = try client.exchange("POST", "/\(index)", body: body)
          #expect(response.text == "POST /\(index) \(body.count)")
        }
        let pipeline = (0..<20).map { RawClient.message("GET", "/p\($0)") }
        try client.send(Array(pipeline.joined()))
        for index in 0..<20 { #expect(try client.response().text == "GET /p\(index) 0") }
      }
    }
  }

  @Test("HEAD and unknown methods reach the handler")
  func methods() async throws {
    try await withServer(handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let head = try client.exchange("HEAD", "/h")
        #expect(head.headers["content-length"] == "9")
        #expect(head.body.isEmpty)
        #expect(try client.exchange("BREW", "/pot").text == "BREW /pot 0")
        #expect(try client.exchange("OPTIONS", "*").text == "OPTIONS * 0")
      }
    }
  }

  @Test("only a small content without a coding is handled on its connection's thread, beside few")
  func threads() async throws {
    final class CountingExecutor: TaskExecutor {
      let jobs = Atomic(0)

      func enqueue(_ job: consuming ExecutorJob) {
        jobs.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
      }
    }
    let executor = CountingExecutor()
    var configuration = HTTPServer.Configuration()
    configuration.executor = { _ in executor }
    let handler: HTTPHandler = { _ in .text("\(executor.jobs.load(ordering: .relaxed))") }
    let small = [UInt8](repeating: 7, count: 4 << 10)
    let coded = try ContentCoding.gzip.compress([UInt8](repeating: 7, count: 1 << 20))
    #expect(coded.count < small.count)
    for (immediate, expected) in [(1, [0, 1, 1]), (0, [1, 1, 1])] {
      configuration.immediateHandlers = immediate
      try await withServer(configuration, handler: handler) { server in
        try await onThread {
          /// Returns the jobs of the executor before the handler ran.
          func countJobs(_ body: [UInt8], _ headers: [String: String] = [:]) throws -> Int? {
            executor.jobs.store(0, ordering: .relaxed)
            let client = try RawClient(port: server.port)
            return Int(try client.exchange("POST", "/", headers: headers, body: body).text)
          }
          let counts = [
            try countJobs(small), try countJobs(small + [7]),
            try countJobs(coded, ["Content-Encoding": "gzip"]),
          ]
          #expect(counts == expected)
        }
      }
    }
  }

  @Test("handlers run in parallel")
  func concurrency() async throws {
    let gate = Gate()
    let arrived = Collector<Int>()
    let handler: HTTPHandler = { request in
      arrived.add(request.body.count)
      await gate.wait()
      return .text(request.path)
    }
    try await withServer(handler: handler) { server in
      try await withThrowingTaskGroup { group in
        for index in 0..<50 {
          group.addTask {
            let response = try await onThread {
              try RawClient(port: server.port).exchange("GET", "/\(index)")
            }
            #expect(response.text == "/\(index)")
          }
        }
        _ = await arrived.values(50)
        gate.open()
        try await group.waitForAll()
      }
    }
  }

  @Test("large bodies pass both ways unchanged")
  func largeBodies() async throws {
    let echo: HTTPHandler = { HTTPResponse(status: 200, body: .bytes($0.body)) }
    let body = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    try await withServer(.init(bodyLimit: 8 << 20), handler: echo) { server in
      let response = try await onThread {
        try RawClient(port: server.port).exchange("POST", "/", body: body)
      }
      #expect(response.body == body)
    }
  }

  @Test("Expect: 100-continue is answered")
  func expectContinue() async throws {
    try await withServer(handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send(
          "POST /e HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        #expect(try client.head().status == 100)
        try client.send("ab")
        #expect(try client.response().text == "POST /e 2")
      }
    }
  }

  @Test("header lines that would split the answer are omitted")
  func responseSplitting() async throws {
    let handler: HTTPHandler = { _ in
      HTTPResponse(status: 200, headers: ["X-Bad": "a\r\nX-Evil: b", "X-Good": "c"])
    }
    try await withServer(handler: handler) { server in
      let response = try await onThread { try RawClient(port: server.port).exchange("GET", "/") }
      #expect(response.headers["x-evil"] == nil)
      #expect(response.headers["x-good"] == "c")
    }
  }

  @Test("an exchange is reported with its sizes")
  func exchanges() async throws {
    let exchanges = Collector<HTTPExchange>()
    let configuration = HTTPServer.Configuration(bodyLimit: 10, onComplete: { exchanges.add($0) })
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let message = RawClient.message("POST", "/x?y", body: [1, 2, 3])
        try client.send(message)
        _ = try client.response()
        _ = try client.exchange("POST", "/big", body: [UInt8](repeating: 0, count: 11))
      }
      let reported = await exchanges.values(2)
      #expect(reported[0].method == "POST")
      #expect(reported[0].path == "/x")
      #expect(reported[0].status == 200)
      #expect(reported[0].requestBytes == RawClient.message("POST", "/x?y", body: [1, 2, 3]).count)
      #expect(reported[0].responseBytes == "POST /x 3".utf8.count)
      #expect(reported[0].remoteAddress == "127.0.0.1")
      #expect(reported[0].isComplete)
      #expect(reported[1].status == 413)
      #expect(reported[1].isComplete)
    }
  }

  @Test("an address in use is reported as such")
  func addressInUse() async throws {
    try await withServer(handler: describe) { server in
      #expect(server.port != 0)
      let expected = HTTPServerError.listen("127.0.0.1", server.port, code: EADDRINUSE)
      #expect(throws: expected) {
        try HTTPServer(configuration: .init(port: server.port), handler: describe)
      }
      #expect(expected.description.contains("port \(server.port) on 127.0.0.1 is in use"))
    }
  }

  /// True unless IPv6 is switched off on this machine.
  private static var hasIPv6: Bool {
    let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
      }
    }
  }

  @Test(
    "an IPv6 socket accepts both families", .enabled(if: hasIPv6, "needs IPv6"),
    arguments: ["::", "[::]"])
  func dualStack(address: String) async throws {
    let handler: HTTPHandler = { .text($0.remoteAddress) }
    try await withServer(.init(address: address), handler: handler) { server in
      let response = try await onThread { try RawClient(port: server.port).exchange("GET", "/") }
      #expect(response.text == "127.0.0.1")
    }
  }

  @Test("an invalid address is refused", arguments: ["", "example.org", "1.2.3", "[::"])
  func badAddress(address: String) {
    #expect(throws: HTTPServerError.badAddress(address)) {
      try HTTPServer(configuration: .init(address: address), handler: describe)
    }
  }

  @Test("connections above the limit wait until one closes")
  func connectionLimit() async throws {
    try await withServer(.init(connectionLimit: 2), handler: describe) { server in
      let third = try await onThread {
        var first: RawClient? = try RawClient(port: server.port)
        let second = try RawClient(port: server.port)
        _ = try first?.exchange("GET", "/1")
        _ = try second.exchange("GET", "/2")
        let third = try RawClient(port: server.port)
        try third.send(RawClient.message("GET", "/3"))
        first = nil
        return try third.response()
      }
      #expect(third.text == "GET /3 0")
    }
  }

  @Test("the soft limit of descriptors is raised to at least 1,024")
  func descriptorLimit() {
    #expect(FileDescriptorLimit.raise() >= 1024)
  }
}
