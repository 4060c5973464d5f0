import FerryTestSupport
import Foundation
import Testing

@testable import FerryHTTPServer

@Suite("Sending files", .hangLimit)
struct FileTransferTests {
  static let several = ["Range": "bytes=0-9999999,20000000-"]

  @Test("many clients receive one file at the same time, each of them every byte")
  func concurrent() async throws {
    let bytes = ScratchFile.pattern(5 << 20)
    let file = try ScratchFile(bytes)
    try await withServer(handler: file.handler()) { server in
      try await withThrowingTaskGroup { group in
        for index in 0..<12 {
          group.addTask {
            let range = index % 3 == 0 ? nil : "bytes=\(index * 100_000)-"
            let headers = range.map { ["Range": $0] } ?? [:]
            let response = try await onThread {
              try RawClient(port: server.port).exchange("GET", "/", headers: headers)
            }
            #expect(response.body == Array(bytes[(range == nil ? 0 : index * 100_000)...]))
          }
        }
        try await group.waitForAll()
      }
    }
    try await file.waitUntilClosed()
  }

  @Test("answers can share one open file")
  func shared() async throws {
    let bytes = ScratchFile.pattern(200_000)
    let file = try ScratchFile(bytes)
    let content = try file.open()
    let handler: HTTPHandler = { request in
      HTTPResponse(
        answering: request, with: .file(content), tag: EntityTag(strong: "s"), mediaType: "a/b")
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let clients = try (0..<4).map { _ in try RawClient(port: server.port) }
        for _ in 0..<5 {
          for client in clients { try client.send(RawClient.message("GET", "/")) }
          for client in clients { #expect(try client.response().body == bytes) }
        }
      }
    }
    #expect(file.openDescriptors == 1)
    // The file may be removed during the transfer.
    #expect(content.isComplete)
  }

  @Test(
    "a client that leaves during a transfer leaves no descriptor behind", arguments: [[:], several])
  func leaving(headers: [String: String]) async throws {
    let file = try ScratchFile()
    file.resize(to: 64 << 20)
    let exchanges = Collector<HTTPExchange>()
    let configuration = HTTPServer.Configuration(onComplete: { exchanges.add($0) }).patient
    try await withServer(configuration, handler: file.handler()) { server in
      try await onThread {
        for _ in 0..<10 {
          let client = try RawClient(port: server.port)
          try client.send(RawClient.message("GET", "/", headers: headers))
          _ = try client.head()
          try client.skip(100_000)
        }
      }
      #expect(await exchanges.values(10).allSatisfy { !$0.isComplete })
      // Unsent bytes are not counted.
      #expect(exchanges.all.allSatisfy { $0.responseBytes < 32 << 20 })
      try await file.waitUntilClosed()
    }
  }

  @Test("a reader that does not read delays no other client", arguments: [[:], several])
  func slowReader(headers: [String: String]) async throws {
    let file = try ScratchFile()
    file.resize(to: 64 << 20)
    // One thread, so all connections are on it.
    let configuration = HTTPServer.Configuration(threads: 1).patient
    try await withServer(configuration, handler: file.handler()) { server in
      try await onThread {
        let slow = try RawClient(port: server.port, receiveBuffer: 4096)
        try slow.send(RawClient.message("GET", "/", headers: headers))
        let head = try slow.head()
        let length = try #require(head.headers["content-length"].flatMap { Int($0) })
        for _ in 0..<3 {
          let other = try RawClient(port: server.port)
          try other.send(RawClient.message("GET", "/"))
          #expect(try other.head().status == 200)
          try other.skip(64 << 20)
        }
        try slow.skip(length)
      }
    }
  }

  @Test(
    "a file that becomes shorter during its transfer ends the connection",
    arguments: [[:], several])
  func truncated(headers: [String: String]) async throws {
    let file = try ScratchFile()
    file.resize(to: 64 << 20)
    // Silence alone must not end it.
    let configuration = HTTPServer.Configuration().patient
    try await withServer(configuration, handler: file.handler()) { server in
      let failure = try await onThread { () -> RawClientError? in
        let client = try RawClient(port: server.port, receiveBuffer: 4096)
        try client.send(RawClient.message("GET", "/", headers: headers))
        let head = try client.head()
        let length = try #require(head.headers["content-length"].flatMap { Int($0) })
        file.resize(to: 1 << 20)
        do {
          try client.skip(length)
          return nil
        } catch let error as RawClientError {
          return error
        }
      }
      #expect(failure == .closed || failure == .reset)
      try await file.waitUntilClosed()
    }
  }

  @Test("a file that was shorter before its transfer ends the connection")
  func truncatedEarly() async throws {
    let file = try ScratchFile()
    file.resize(to: 100_000)
    let handler: HTTPHandler = { request in
      let response = await file.handler()(request)
      file.resize(to: 10)
      return response
    }
    let configuration = HTTPServer.Configuration().patient
    try await withServer(configuration, handler: handler) { server in
      let failure = await #expect(throws: RawClientError.self) {
        try await onThread { try RawClient(port: server.port).exchange("GET", "/") }
      }
      #expect(failure == .closed || failure == .reset)
    }
  }

  @Test(
    "a file of a gibibyte needs no memory",
    arguments: [[:], ["Range": "bytes=0-500000000,600000000-"]])
  func large(headers: [String: String]) async throws {
    // In a separate process: tests beside this one use memory too.
    await #expect(processExitsWith: .success) { [headers = headers as [String: String]] in
      let size = 1 << 30
      let file = try ScratchFile()
      file.resize(to: size)
      try await withServer(handler: file.handler()) { server in
        try await onThread {
          let client = try RawClient(port: server.port)
          try client.send(RawClient.message("GET", "/", headers: headers))
          let head = try client.head()
          let length = try #require(head.headers["content-length"].flatMap { Int($0) })
          #expect(length > 900_000_000)
          let before = try Self.residentBytes()
          var most = 0
          for _ in 0..<64 {
            try client.skip(length / 64)
            most = max(most, try Self.residentBytes() - before)
          }
          try client.skip(length % 64)
          #expect(most < 64 << 20)
        }
      }
    }
  }

  private static func residentBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let pages = status.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(pages) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }
}
