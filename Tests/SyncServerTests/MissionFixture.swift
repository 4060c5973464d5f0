import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Foundation

@testable import FerrySyncServer

/// A service over a real embedded store, with a directory for content, without a socket.
struct MissionFixture {
  let folder: TemporaryDirectory
  let store: SQLiteStore
  let blobs: BlobDirectory
  let desk: MissionService
  let service: SyncService
  let recorder = LogRecorder()

  init(
    hasBlobs: Bool = true, uploadQuota: Int64 = MissionService.uploadQuotaStandard,
    quotas: Quotas = .standard
  ) async throws {
    folder = try TemporaryDirectory(prefix: "ferry-missions")
    store = try await SQLiteStore(directory: folder.url.path)
    blobs = try BlobDirectory(folder.file("blobs").path)
    let clock = ServiceClockDouble().clock
    desk = MissionService(
      store: store, blobs: BlobThreads(blobs), clock: clock, uploadQuota: uploadQuota)
    service = SyncService(
      SyncService.Parts(
        store: store, gate: AccessGate(store: store, clock: clock, checksLoopback: false),
        hub: HeadHub(store, turn: .zero, sleep: { _ in }), metrics: ServiceMetrics(),
        log: ServiceLog(level: .debug, sink: recorder, clock: clock), clock: clock,
        limits: .standard, quotas: quotas, missions: hasBlobs ? desk : nil))
    for name in ["notes", "other"] { _ = try await store.createSpace(.known(name)) }
  }

  func token(_ role: Role, of space: String = "notes") async throws -> AccessToken {
    var random = SystemRandomNumberGenerator()
    let token = AccessToken(random: &random)
    try await store.addToken(token, AccessGrants(.known(space), role))
    return token
  }

  func send(
    _ method: String, _ path: String, query: [String: String] = [:], token: AccessToken? = nil,
    headers: HTTPHeaders = [:], body: [UInt8] = []
  ) async -> HTTPResponse {
    var headers = headers
    if let token { headers["Authorization"] = "Bearer \(token.text)" }
    let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    return await service.respond(
      to: HTTPRequest(
        method: method, path: path, segments: segments.map(String.init), query: query,
        headers: headers, body: body, bodyWireBytes: body.count, remoteAddress: "127.0.0.1"))
  }

  /// Sends content whole.
  @discardableResult
  func upload(
    _ bytes: [UInt8], to space: String = "notes", token: AccessToken? = nil
  ) async -> HTTPResponse {
    await send(
      "PUT", "/v1/spaces/\(space)/blobs/\(ContentHash(of: bytes))", token: token, body: bytes)
  }

  /// Publishes one item for each content.
  func publish(
    _ contents: [[UInt8]], as id: String = "tour", in space: String = "notes",
    version: Int64? = nil, token: AccessToken? = nil
  ) async -> HTTPResponse {
    await send(
      "PUT", "/v1/spaces/\(space)/missions/\(id)", token: token,
      body: Self.document(contents, version: version))
  }

  static func document(_ contents: [[UInt8]], version: Int64? = nil) -> [UInt8] {
    let items = contents.enumerated().map { index, bytes in
      #"{"path":"\#(index)","size":\#(bytes.count),"sha256":"\#(ContentHash(of: bytes))"}"#
    }
    let head = version.map { #""version":\#($0),"# } ?? ""
    return Array(#"{\#(head)"title":"A tour","items":[\#(items.joined(separator: ","))]}"#.utf8)
  }

  /// Returns the size of the content sent by a response with a file.
  static func content(_ answer: HTTPResponse) -> Int? {
    if case .file(let content) = answer.body { content.count } else { nil }
  }
}
