import FerryHTTPServer
import FerryMissionServer
import FerryProtocol

/// Answers requests about missions' content.
struct ContentHandler: Sendable {
  let core: ServiceCore
  let access: RequestAccess
  let missions: MissionCalls
  let uploads: UploadShares
  /// The memory of content on the way.
  let budget: MemoryBudget
  /// Runs the transfers; `nil` for the shared pool.
  let executor: (any TaskExecutor)?

  /// A year, the longest time used by caches: content never changes under one hash.
  private static let cacheControl = "private, max-age=31536000, immutable"

  /// Returns content. Missing content, and content that the token's space may not read, give the
  /// same 404.
  func download(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    let identity = try await access.identify(context.request, context.match.route)
    context.principal = identity.principal
    context.space = identity.grants.onlySpace
    try access.count(&context)
    let desk = try missions.service()
    guard let hash = ContentHash(context.match.itemText ?? "") else { throw .unknownContent }
    let blob = try await readableBlob(hash, identity)
    guard let blob else { throw .unknownContent }
    guard let path = desk.blobs.file(of: hash) else {
      let representation = Representation(
        size: Int(blob.size), tag: EntityTag(strong: hash.description),
        mediaType: MediaType.unknown.name, cacheControl: Self.cacheControl)
      let plan = RelayPlan(of: representation, for: context.request)
      if !plan.parts.isEmpty, let address = desk.blobs.address(of: hash) {
        return HTTPResponse(
          status: 307, headers: ["Location": address, "Cache-Control": "no-store"])
      }
      return try await relay(blob, plan, from: desk.blobs, for: context.principal)
    }
    let opened = try await missions.call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.local.run { (_, _) throws(BlobError) in
          Swift.Result { () throws(ReadableFileError) in try ReadableFile(path: path) }
        }
      }
    }
    guard case .success(let file) = opened, Int64(file.size) == blob.size else {
      core.log.write(.error, "content is missing or damaged", detail: hash.description)
      throw Problem(.unavailable, "the content is not on this server's disk")
    }
    return HTTPResponse(
      answering: context.request, with: .file(FileContent(file)),
      tag: EntityTag(strong: hash.description), mediaType: MediaType.unknown.name,
      cacheControl: Self.cacheControl)
  }

  /// Answers with content of a store elsewhere. The content on the way takes memory of the budget.
  private func relay(
    _ blob: MissionBlob, _ plan: RelayPlan, from blobs: any ContentStore,
    for principal: Principal?
  ) async throws(Problem) -> HTTPResponse {
    let stream = HTTPStream(capacity: ContentRelay.capacity, isEndless: false)
    let relay = ContentRelay(blobs: blobs, blob: blob, stream: stream)
    guard !plan.parts.isEmpty else { return plan.response(stream) }
    let account = principal?.memoryAccount
    guard let memory = budget.transfer(ContentRelay.memory, account: account) else {
      throw Problem(
        .unavailable, "the server's memory is in use; send the request again in a moment")
    }
    // A failure of the store is a separate answer as long as nothing was sent.
    var reader: ContentReader?
    if case .range(let range)? = plan.parts.first {
      reader = try await missions.call { () async throws(MissionFailure) in
        try await blobs.content { (_) async throws(BlobError) in try await relay.open(range) }
      }
    }
    let log = core.log
    let task = Task(executorPreference: executor) { [reader] in
      defer { withExtendedLifetime(memory) {} }
      do throws(BlobError) {
        try await relay.send(plan.parts, reader)
      } catch {
        stream.abort()
        if error != .cancelled { log.write(MissionFailure.content(error)) }
      }
    }
    stream.onClose { task.cancel() }
    var response = plan.response(stream)
    response.share = memory
    return response
  }

  /// Returns the content, if a space readable by the caller names it.
  private func readableBlob(
    _ hash: ContentHash, _ identity: Identity
  ) async throws(Problem) -> MissionBlob? {
    try await core.ask { (store) async throws(StoreError) in
      for (pattern, _) in identity.grants.list {
        if let blob = try await store.readableBlob(hash, in: pattern) { return blob }
      }
      guard let user = identity.principal.user else { return nil }
      return try await store.readableBlob(hash, of: user)
    }
  }

  // MARK: Uploads

  /// Returns how much of an upload is here.
  func state(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let hash = try Self.contentHash(context)
    let desk = try missions.service()
    let space = try await core.find(name)
    if let size = try await uploaded(hash, in: space, desk) {
      return Self.upload(at: size, isComplete: true, status: 204)
    }
    let owner = String(space.id)
    let offset = try await missions.call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.offset(owner: owner, hash)
      }
    }
    return Self.upload(at: offset, isComplete: false, status: 204)
  }

  /// Receives content, or the next part of it.
  func upload(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let hash = try Self.contentHash(context)
    let body = context.request.body
    let range = try UploadRange(
      context.request.headers["Content-Range"], bodyCount: body.count)
    let desk = try missions.service()
    let space = try await core.find(name)
    // The client repeats a request after a lost answer.
    if let size = try await uploaded(hash, in: space, desk) {
      return Self.upload(at: size, isComplete: true, status: 204)
    }
    try await checkUnpublished(range.total, in: space)
    let upload = BlobDirectory.Upload(
      owner: String(space.id), hash: hash, total: range.total, quota: desk.uploadQuota)
    let end: Int64
    do {
      end = try await desk.blobs.append(body, at: range.offset, to: upload)
    } catch {
      if case .wrongOffset(let offset) = error {
        context.uploadOffset = offset
      } else {
        core.log.write(MissionFailure.content(error))
      }
      throw Problem(error)
    }
    guard end == range.total else {
      return Self.upload(at: end, isComplete: false, status: 204)
    }
    let now = core.clock.wall()
    try await core.ask { (store) async throws(StoreError) in
      try await store.storeUpload(
        MissionBlob(hash: hash, size: end), in: space.id, now: now)
    }
    uploads.add(end, in: space.id)
    return Self.upload(at: end, isComplete: true, status: 201)
  }

  /// Throws a problem if a space has no room for content beside its unpublished uploads.
  private func checkUnpublished(_ size: Int64, in space: SpaceSummary) async throws(Problem) {
    let quotas = core.quotas
    let use = try await uploads.use(in: space.id) { () async throws(Problem) in
      try await core.ask { (store) async throws(StoreError) in
        try await store.unpublishedUse(in: space.id)
      }
    }
    let advice = "Publish them, or wait until the server removes them"
    guard use.files < quotas.unpublishedFiles else {
      throw Problem(
        .uploadQuota,
        "\(use.files) uploads of this space are finished and not yet in a mission; the limit is "
          + "\(quotas.unpublishedFiles). \(advice)")
    }
    let quota = quotas.unpublishedBytes
    guard use.bytes > quota - min(quota, size) else { return }
    throw Problem(
      .uploadQuota,
      "\(use.bytes) bytes of this space are uploaded and not yet in a mission; with this content "
        + "they exceed the limit of \(quota). \(advice)")
  }

  /// Returns the bytes of content sent to this space, or named by its missions.
  private func uploaded(
    _ hash: ContentHash, in space: SpaceSummary, _ desk: MissionService
  ) async throws(Problem) -> Int64? {
    let held = try await core.ask { (store) async throws(StoreError) in
      try await store.heldBlobs(among: [hash], in: space.id)
    }
    guard let blob = held.first else { return nil }
    let size = try await missions.call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.size(of: hash)
      }
    }
    return size == blob.size ? size : nil
  }

  private static func upload(at offset: Int64, isComplete: Bool, status: Int) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [
        "Upload-Offset": String(offset), "Upload-Complete": isComplete ? "?1" : "?0",
        "Cache-Control": "no-store",
      ])
  }

  private static func contentHash(_ context: RequestContext) throws(Problem) -> ContentHash {
    guard let hash = ContentHash(context.match.itemText ?? "") else {
      throw Problem(
        .malformedMessage, "content has a SHA-256 as its name: 64 lower-case hexadecimal digits")
    }
    return hash
  }
}

extension Problem {
  fileprivate static var unknownContent: Problem {
    Problem(.notFound, "there is no such content for this token")
  }
}
