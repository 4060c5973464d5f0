import FerryCommandLine
import FerryMissionServer
import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerrySyncServer

/// Missions of a server elsewhere, through the HTTP interface.
struct RemoteMissions: MissionTarget {
  /// Bytes of content in one request: well below a server's limit.
  private static let partBytes = 4 << 20
  /// Files sent at once: a small file costs two round trips.
  private static let uploadsMax = 8

  private let space: SpaceName
  var name: SpaceName { space }
  private let client: NetworkClient
  private let thread = ThreadExecutor(name: "ferry-files")

  /// - Parameter authorities: a PEM file of certificate authorities to trust besides the system's.
  init(
    _ url: String, token: String?, space: SpaceName, authorities: String? = nil
  ) throws(UsageError) {
    self.space = space
    client = NetworkClient(try Self.configuration(url, token: token, authorities: authorities))
  }

  /// Returns the settings of requests to a server.
  ///
  /// - Parameter authorities: a PEM file of certificate authorities to trust besides the system's.
  static func configuration(
    _ url: String, token: String?, authorities: String?
  ) throws(UsageError) -> NetworkConfiguration {
    let lowered = url.lowercasedASCII
    guard lowered.begins(with: "http://") || lowered.begins(with: "https://") else {
      throw UsageError(
        .invalidValue, "'\(url)' is not a server's address",
        why: "--server takes a http:// or https:// URL", next: "write http://127.0.0.1:8080")
    }
    let base = url.start(before: "/").map(String.init) ?? url
    let fields: TransportHeaders = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
    var configuration = NetworkConfiguration(BaseURL(base + "/v1", headers: fields))
    configuration.timeout = .seconds(300)
    configuration.certificateAuthorities = authorities
    // Every request here may be sent twice. A person waits, so not for long.
    configuration.retry = RetryPolicy(retryAfterMax: .seconds(30), attemptsMax: 3)
    return configuration
  }

  func list(after place: MissionID?) async throws -> MissionPage {
    let answer = try await send(.get, "spaces/\(space)/missions", query: Self.query(place))
    return try read { () throws(MalformedMessage) in try MissionPage(decoding: answer.body) }
  }

  private static func query(_ place: MissionID?) -> [QueryItem] {
    place.map { [QueryItem("after", $0.value)] } ?? []
  }

  func show(_ id: MissionID) async throws -> (MissionRecord, [UInt8]) {
    let answer = try await send(.get, "spaces/\(space)/missions/\(id)")
    let record = try read { () throws(MalformedMessage) in
      try MissionRecord(decoding: answer.body)
    }
    return (record, try await send(.get, "blobs/\(record.manifest)").body)
  }

  func damaged(_ manifest: MissionManifest) async throws -> [String] {
    throw UsageError(
      .invalidValue, "--verify does not work with --server",
      why: "it reads the content from the server's disk",
      next: "run it on the server, without --server")
  }

  func retract(_ id: MissionID) async throws {
    _ = try await send(.delete, "spaces/\(space)/missions/\(id)")
  }

  func bundles(after place: MissionID?) async throws -> ([BundleEntry], next: MissionID?) {
    let answer = try await send(.get, "spaces/\(space)/bundles", query: Self.query(place))
    let page = try read { () throws(MalformedMessage) in try BundlePage(decoding: answer.body) }
    return (page.entries, page.next)
  }

  func bundle(_ name: BundleName) async throws -> BundleOverview {
    let answer = try await send(.get, "spaces/\(space)/bundles/\(name)")
    return try read { () throws(MalformedMessage) in
      try BundleOverview(decoding: answer.body)
    }
  }

  func change(_ bundle: BundleID, _ change: BundleChange) async throws -> BundleEntry {
    let request = BundleChangeRequest(version: bundle.version, change: change)
    let answer = try await send(
      .post, "spaces/\(space)/bundles/\(bundle.name)", body: request.encoded())
    return try read { () throws(MalformedMessage) in try BundleEntry(decoding: answer.body) }
  }

  // MARK: Publishing

  func intake(after last: MissionID?) async throws -> BlobIntake { BlobIntake() }

  func publish(
    _ manifest: MissionManifest, _ files: [BlobSource], isNewKey: Bool, share: BundleShare,
    bar: ProgressBar
  ) async throws -> MissionRecord {
    try await upload(files, bar: bar)
    var document = manifest.encoded()
    let path = "spaces/\(space)/missions/\(manifest.id)"
    var query: [QueryItem] = []
    if document.count > Self.partBytes {
      let content = document
      let hash = ContentHash(of: content)
      try await upload(hash, size: Int64(content.count), bar: nil) { offset, count in
        Array(content[Int(offset)..<Int(offset) + count])
      }
      query.append(QueryItem("document", hash.description))
      document = []
    }
    if isNewKey { query.append(QueryItem("newKey", "true")) }
    if manifest.bundle != nil {
      query.append(QueryItem("rollout", "\(share.hundredths)"))
    }
    let answer = try await send(.put, path, query: query, body: document)
    return try read { () throws(MalformedMessage) in try MissionRecord(decoding: answer.body) }
  }

  /// Sends the missing content of files, several at once. The first error ends all.
  private func upload(_ files: [BlobSource], bar: ProgressBar) async throws {
    var seen = Set<ContentHash>()
    var waiting: [BlobSource] = []
    for file in files {
      // Equal files are sent once.
      if seen.insert(file.digest.hash).inserted {
        waiting.append(file)
      } else {
        bar.advance(by: file.digest.size)
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, file) in waiting.enumerated() {
        if index >= Self.uploadsMax { try await group.next() }
        group.addTask { try await upload(file, bar: bar) }
      }
      try await group.waitForAll()
    }
  }

  private func upload(_ file: BlobSource, bar: ProgressBar) async throws {
    try await upload(file.digest.hash, size: file.digest.size, bar: bar) { offset, count in
      try await thread.run { try FilePart.read(file.path, at: offset, count: count) }
    }
  }

  /// Sends the missing part of one content to the server.
  private func upload(
    _ hash: ContentHash, size: Int64, bar: ProgressBar?,
    _ content: (_ offset: Int64, _ count: Int) async throws -> [UInt8]
  ) async throws {
    let path = "spaces/\(space)/blobs/\(hash)"
    let state = PartialUploadState(try await send(.head, path))
    var offset = state.offset(in: size)
    bar?.advance(by: min(offset, size))
    if state.isComplete { return }
    var conflicts = 0
    var standing = 0
    repeat {
      let count = Int(min(Int64(Self.partBytes), max(0, size - offset)))
      let part = try await content(offset, count)
      guard part.count == count else { throw BlobError.changed(path: hash.description) }
      var headers = TransportHeaders()
      if size > 0 {
        headers["Content-Range"] = "bytes \(offset)-\(offset + Int64(count) - 1)/\(size)"
      }
      let answer = try await exchange(
        NetworkRequest(
          path, method: .put, headers: headers,
          body: .bytes(part, contentType: "application/octet-stream")))
      if answer.status == 409, conflicts < 10 {
        // Another client sends the same content.
        conflicts += 1
        offset = PartialUploadState(answer).offset(in: size)
        continue
      }
      let accepted = PartialUploadState(try checked(answer))
      if accepted.isComplete {
        bar?.advance(by: Int64(count))
        return
      }
      let reached = accepted.offset(in: size)
      standing = reached > offset ? 0 : standing + 1
      guard standing < 10 else {
        throw CommandFailure(
          "the upload makes no progress",
          why:
            "after ten attempts the server still has \(reached.grouped) of \(size.counted("byte"))",
          next: "report this to the server's administrator; the server keeps these bytes",
          code: "upload_stands")
      }
      offset = reached
      bar?.advance(by: Int64(count))
    } while offset < size
  }

  // MARK: Requests

  private func send(
    _ method: TransportMethod, _ path: String, query: [QueryItem] = [], body: [UInt8]? = nil
  ) async throws -> NetworkResponse {
    try checked(
      try await exchange(
        NetworkRequest(
          path, method: method, query: query,
          body: body.map { .bytes($0, contentType: "application/json") })))
  }

  /// Returns the server's answer, be it a rejection.
  private func exchange(_ request: NetworkRequest) async throws -> NetworkResponse {
    do throws(NetworkError) {
      return try await client.send(request)
    } catch {
      if case .rejected = error.kind, let response = error.response { return response }
      throw CommandFailure(
        error.kind == .secureConnectionFailed
          ? "the server could not be trusted"
          : error.kind == .redirectRefused
            ? "the server redirects to another address" : "the server cannot be reached",
        why: error.description,
        next: "check --server, and try again: the server keeps the uploaded content",
        status: error.isTransient ? .unreachable : .failed, code: error.reason)
    }
  }

  private func checked(_ answer: NetworkResponse) throws -> NetworkResponse {
    guard !answer.isSuccess else { return answer }
    if let problem = Problem(decoding: answer.body) { throw problem }
    // The answer to HEAD has no content.
    switch answer.status {
    case 401: throw Problem(.unauthorized, "the server requires a valid token")
    case 403: throw Problem(.forbidden, "the token does not have the role admin in space \(space)")
    case 404:
      throw Problem(.notFound, "the server does not have this space, or does not support missions")
    default: break
    }
    throw CommandFailure(
      "the server refused", why: "it answered with status \(answer.status)",
      next: "check --server and --token", code: "refused")
  }

  private func read<T>(_ body: () throws(MalformedMessage) -> T) throws(CommandFailure) -> T {
    do {
      return try body()
    } catch {
      throw CommandFailure(
        "the server's answer cannot be read", why: error.description,
        next: "check --server: is it a Ferry server with support for missions?",
        code: "malformed_answer")
    }
  }
}

/// The server's state of an upload.
private struct PartialUploadState {
  let isComplete: Bool
  /// Bytes received by the server.
  private let received: Int64

  init(_ answer: NetworkResponse) {
    received = max(0, answer.headers["Upload-Offset"].flatMap { Int64($0) } ?? 0)
    isComplete = answer.headers["Upload-Complete"] == "?1"
  }

  /// Returns the offset from which to go on in content of so many bytes. If all is there and not
  /// complete, the last byte is sent again: with it the server checks the whole.
  func offset(in size: Int64) -> Int64 { min(received, max(0, size - 1)) }
}
