import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("A download through the network client", .hangLimit)
struct DownloadClientTests {
  private typealias Answer = HostileServer.Answer
  private let content = Array(DownloadFixture.content.prefix(900_000))
  private let fixture: DownloadFixture

  init() throws { fixture = try DownloadFixture() }

  /// Fetches content from the server with a client that sends a token.
  private func download(from server: HostileServer) async throws -> DownloadOutcome {
    let base = BaseURL(
      "http://127.0.0.1:\(server.port)", headers: ["Authorization": "Bearer token"])
    let client = NetworkClient(NetworkConfiguration(base))
    var settings = DownloadSettings()
    settings.wholeBytes = 0
    let downloader = ChunkedDownloader(
      settings: settings, open: ChunkedDownloader.requests(through: client))
    var job = fixture.job(content, from: "", inChunks: true)
    job.source = .blob(DownloadFixture.hash(content))
    return try await downloader.download(job) { _ in }
  }

  @Test("a download requests the server's content with its token, by range")
  func blob() async throws {
    let content = content
    let server = try HostileServer { .good(content, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    #expect(try await download(from: server).bytesFetched == Int64(content.count))
    #expect(try fixture.content() == content)
    let path = "/v1/blobs/\(DownloadFixture.hash(content))"
    #expect(server.requests.allSatisfy { $0.path == path && $0.fields["range"] != nil })
    #expect(server.requests.allSatisfy { $0.fields["authorization"] == "Bearer token" })
    #expect(server.requests.allSatisfy { $0.fields["accept-encoding"] == "identity" })
  }

  @Test("a download reports the server's refusal once")
  func refused() async throws {
    let server = try HostileServer { _ in Answer("403 Forbidden", [], Array("no".utf8)) }
    defer { server.stop() }
    await #expect {
      try await download(from: server)
    } throws: {
      ($0 as? DownloadError)?.kind == .server(403)
    }
    #expect(server.requests.count == 1)
  }
}
