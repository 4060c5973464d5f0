import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("A proxy that answers instead of the server", .hangLimit)
struct ProxyRefusalTests {
  /// Refuses bodies above a size, as nginx does.
  private static func limiting(to bytes: Int) -> ScriptedServer {
    ScriptedServer { request, _ in
      (request.body?.count ?? 0) > bytes
        ? ScriptedServer.webPage(413, "413 Request Entity Too Large") : nil
    }
  }

  @Test("a proxy that refuses large packets gets smaller ones, even parts of one transaction")
  func smaller() async throws {
    let directory = try TemporaryDirectory()
    let server = Self.limiting(to: 20_000)
    let replica = try await server.replica(in: directory)
    let text = String(repeating: "x", count: 1_000)
    try await replica.write { database in
      for number in 0..<40 {
        try database.execute("INSERT INTO notes VALUES (?, ?)", [.text("a\(number)"), .text(text)])
      }
    }
    for number in 0..<40 {
      try await replica.write {
        try $0.execute("INSERT INTO notes VALUES (?, ?)", [.text("b\(number)"), .text(text)])
      }
    }
    let report = try await replica.sync()
    #expect(report.quarantined == 0)
    #expect(Set(server.operations.map(\.key)).count == 80)
    #expect(try await replica.status().pending == 0)
  }

  @Test("if a proxy refuses every request with one row, that row is quarantined with the limit")
  func tooLarge() async throws {
    let directory = try TemporaryDirectory()
    let server = Self.limiting(to: 20_000)
    let replica = try await server.replica(in: directory)
    for (name, count) in [("small", 10), ("large", 50_000), ("other", 10)] {
      let text = String(repeating: "x", count: count)
      try await replica.write {
        try $0.execute("INSERT INTO notes VALUES (?, ?)", [.text(name), .text(text)])
      }
    }
    let report = try await replica.sync()
    #expect(report.quarantined == 1)
    #expect(Set(server.operations.map(\.key.record)) == ["small", "other"])
    let entry = try #require(try await replica.quarantine.entries(limit: 10).first)
    #expect(entry.operations.map(\.key.record) == ["large"])
    #expect(entry.code.rawValue == "too_large_for_proxy")
    #expect(entry.detail.contains("413 Request Entity Too Large"))
  }

  @Test(
    "a coded packet that is refused is sent once more without a coding",
    arguments: [
      Problem(.limitExceeded, "it expands too much"), Problem(.unsupportedCoding, "none is read"),
      nil,
    ])
  func coding(_ problem: Problem?) async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer(headers: ["Accept-Encoding": "gzip"]) { request, _ in
      guard request.headers["Content-Encoding"] != nil else { return nil }
      return problem.map { ScriptedServer.json($0.encoded(), status: 400) }
        ?? ScriptedServer.webPage(403, "Blocked")
    }
    let replica = try await server.replica(in: directory)
    let text = String(repeating: "x", count: 5_000)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', ?)", [.text(text)]) }
    #expect(try await replica.sync().quarantined == 0)
    #expect(server.operations.map(\.key.record) == ["a"])
    let packets = server.requests.filter { $0.url.contains("/packets") }
    #expect(packets.map { $0.headers["Content-Encoding"] } == ["gzip", nil])
  }

  @Test("if a proxy refuses the content of one row, that row is quarantined")
  func content() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      let body = String(decoding: request.body ?? [], as: UTF8.self)
      return body.contains("DROP TABLE") ? ScriptedServer.webPage(403, "Blocked") : nil
    }
    let replica = try await server.replica(in: directory)
    for (name, text) in [("a", "x"), ("b", "'; DROP TABLE notes"), ("c", "z")] {
      try await replica.write {
        try $0.execute("INSERT INTO notes VALUES (?, ?)", [.text(name), .text(text)])
      }
    }
    let report = try await replica.sync()
    #expect(report.quarantined == 1)
    #expect(Set(server.operations.map(\.key.record)) == ["a", "c"])
  }

  @Test("a damaged answer to a damaged packet takes nothing out of the queue")
  func damaged() async throws {
    let directory = try TemporaryDirectory()
    let isFirst = Atomic(true)
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/packets"), isFirst.exchange(false, ordering: .relaxed) else {
        return nil
      }
      return ScriptedServer.json(Array("{\"code\":\"malform".utf8), status: 400)
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    let report = try await replica.sync()
    #expect(report.pushed == 1)
    #expect(report.quarantined == 0)
  }

  @Test("if a proxy refuses everything, nothing leaves the queue", arguments: [403, 413, 200])
  func everything(status: Int) async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      request.url.contains("/packets") || request.url.contains("/records")
        ? ScriptedServer.webPage(status, "Portal") : nil
    }
    let replica = try await server.replica(in: directory)
    for name in ["a", "b"] {
      try await replica.write { try $0.execute("INSERT INTO notes VALUES (?, 'x')", [.text(name)]) }
    }
    await #expect {
      try await replica.sync()
    } throws: {
      guard case .unexpectedAnswer(let found, let text) = $0 as? ReplicaError else { return false }
      return found == status && text.contains("“Portal”") && text.contains("proxy")
    }
    let after = try await replica.status()
    #expect(after.pending == 2 && after.quarantined == 0)
  }
}
