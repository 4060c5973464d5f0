import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A published mission, its server, and a device connected through a proxy.
struct MissionStage: Sendable {
  /// The mission's name.
  static let mission = "film"
  /// Of hundreds: the permitted share of content fetched twice, however often a download is
  /// interrupted.
  static let twice = 1

  let server: Server
  let proxy: TCPProxy
  let device: Device
  let draft: Draft
  /// Bytes of all items.
  let size: Int

  /// Publishes one large item and some small ones.
  ///
  /// - Parameter isTight: Whether the system buffers only a little of the server's data.
  static func make(mebibytes: Int, isTight: Bool = false) async throws -> MissionStage {
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: mebibytes)
    for number in 0..<12 {
      try draft.write("pages/\(number).json", Draft.content(UInt64(number) + 2, 3_000))
    }
    let server = try await Server.start()
    let proxy = try TCPProxy(to: server.port, answerBytesMax: isTight ? 64 << 10 : nil)
    let device = try await Device.joined(proxy.url)
    try await server.publish(draft.path, as: mission, "--chunk-size", "1MiB")
    return MissionStage(
      server: server, proxy: proxy, device: device, draft: draft,
      size: mebibytes << 20 + 12 * 3_000)
  }

  /// The largest number of bytes that proves that no content was fetched twice.
  var bound: Int { size + size * Self.twice / 100 }

  /// Starts `ferry mission download`.
  func download(_ arguments: String...) throws -> MissionRun {
    try MissionRun(device, ["download", Self.mission] + arguments)
  }

  /// Checks that the device has exactly the published content.
  func expectWhole(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await device.expect(draft, in: Self.mission, sourceLocation: sourceLocation)
  }
}

extension Server {
  /// Publishes a folder or a manifest on the server's store.
  func publish(_ path: String, as id: String, _ more: String...) async throws {
    let arguments =
      ["mission", "publish", "--space", Device.space, "--id", id, path] + more
    let finished = try await run(arguments)
    try #require(finished.status == .exited(0), "\(finished.error)")
  }

  /// Returns the sum of a metric's samples with all these labels.
  func metric(_ name: String, _ labels: String...) async throws -> Int {
    let page = try await Wire.send(.get, "\(url)/metrics")
    try #require(page.status == 200)
    try #require(page.text.contains("# TYPE \(name) "), "\(name)")
    return page.text.split(separator: "\n").filter { line in
      (line.hasPrefix("\(name){") || line.hasPrefix("\(name) "))
        && labels.allSatisfy { line.contains($0) }
    }.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0) { $0 + Int($1) }
  }

  /// Returns the bytes of content, manifests included, sent by the server since the start.
  func blobBytes() async throws -> Int {
    try await metric("ferry_http_response_bytes_total", "route=\"/v1/blobs/{sha256}\"")
  }

  /// Returns the requests for content answered by the server since the start.
  func blobRequests() async throws -> Int {
    try await metric("ferry_http_requests_total", "route=\"/v1/blobs/{sha256}\"")
  }
}

extension Device {
  /// Checks that a mission's folder has the published content.
  func expect(
    _ draft: Draft, in mission: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let path = try await ferry("mission", "path", mission, sourceLocation: sourceLocation).output
    let folder = path.trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(try draft.isEqual(to: folder), sourceLocation: sourceLocation)
  }

  /// Returns the state of a mission, as `ferry mission show` reports it.
  func mission(_ id: String) async throws -> JSONLine {
    try #require(try JSONLine.all(try await ferry("mission", "show", id, "--json").output).first)
  }
}
