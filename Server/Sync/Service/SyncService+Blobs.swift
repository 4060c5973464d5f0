import FerryHTTPServer
import FerryMissionServer
import FerryProtocol

// The requests about missions' content.
extension SyncService {
  /// A year, the longest time used by caches: content never changes under one hash.
  private static let cacheControl = "private, max-age=31536000, immutable"

  /// Returns content. Missing content, and content that the token's space may not read, give the
  /// same 404.
  func blob(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    let visitor = Self.visitor(context.request, context.match.route)
    let gate = parts.gate
    let identity = try await ask { () async throws(StoreError) in
      try await gate.identify(visitor)
    }.get()
    context.principal = identity.principal
    context.space = identity.grants.onlySpace
    try count(&context)
    let desk = try missionService()
    guard let hash = ContentHash(context.match.itemText ?? "") else { throw .unknownContent }
    let blob = try await readableBlob(hash, identity.grants)
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
    let opened = try await call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.local.run { (_, _) throws(BlobError) in
          Swift.Result { () throws(ReadableFileError) in try ReadableFile(path: path) }
        }
      }
    }
    guard case .success(let file) = opened, Int64(file.size) == blob.size else {
      parts.log.write(.error, "content is missing or damaged", detail: hash.description)
      throw Problem(.unavailable, "the content is not on this server's disk")
    }
    return HTTPResponse(
      answering: context.request, with: .file(FileContent(file)),
      tag: EntityTag(strong: hash.description), mediaType: MediaType.unknown.name,
      cacheControl: Self.cacheControl)
  }

  /// Returns the content, if a space readable by the caller names it.
  private func readableBlob(
    _ hash: ContentHash, _ grants: AccessGrants
  ) async throws(Problem) -> MissionBlob? {
    let store = parts.store
    return try await ask { () async throws(StoreError) in
      for (pattern, _) in grants.list {
        if let blob = try await store.readableBlob(hash, in: pattern) { return blob }
      }
      return nil
    }
  }

  // MARK: Uploads

  /// Returns how much of an upload is here.
  func uploadState(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let hash = try Self.contentHash(context)
    let desk = try missionService()
    let space = try await find(name)
    if let size = try await uploaded(hash, in: space, desk) {
      return Self.upload(at: size, isComplete: true, status: 204)
    }
    let owner = String(space.id)
    let offset = try await call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.offset(owner: owner, hash)
      }
    }
    return Self.upload(at: offset, isComplete: false, status: 204)
  }

  /// Receives content, or the next part of it.
  func receiveUpload(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let hash = try Self.contentHash(context)
    let body = context.request.body
    let range = try UploadRange(
      context.request.headers["Content-Range"], bodyCount: body.count)
    let desk = try missionService()
    let space = try await find(name)
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
        parts.log.write(MissionFailure.content(error))
      }
      throw Problem(error)
    }
    guard end == range.total else {
      return Self.upload(at: end, isComplete: false, status: 204)
    }
    let (store, now) = (parts.store, parts.clock.wall())
    try await ask { () async throws(StoreError) in
      try await store.storeUpload(
        MissionBlob(hash: hash, size: end), in: space.id, now: now)
    }
    uploads.add(end, in: space.id)
    return Self.upload(at: end, isComplete: true, status: 201)
  }

  /// Throws a problem if a space has no room for content beside its unpublished uploads.
  private func checkUnpublished(_ size: Int64, in space: SpaceSummary) async throws(Problem) {
    let (store, quotas) = (parts.store, parts.quotas)
    let use = try await uploads.use(in: space.id) { () async throws(Problem) in
      try await ask { () async throws(StoreError) in
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
    let store = parts.store
    let held = try await ask { () async throws(StoreError) in
      try await store.heldBlobs(among: [hash], in: space.id)
    }
    guard let blob = held.first else { return nil }
    let size = try await call { () async throws(MissionFailure) in
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
