import FerryHTTPServer
import FerryMissionServer
import FerryProtocol

/// Answers requests about a space's missions.
struct MissionHandler: Sendable {
  let core: ServiceCore
  let missions: MissionCalls
  let memory: AnswerMemory

  func list(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = try MissionListQuery(context.request.query)
    let space = try await core.find(name)
    let page = try await core.ask { (store) async throws(StoreError) in
      try await store.missions(in: space.id, after: query.after, limit: query.limit)
    }
    return .json(page.encoded())
  }

  func show(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let id = try Self.missionID(context)
    let space = try await core.find(name)
    let known = try await core.ask { (store) async throws(StoreError) in
      try await store.mission(id, in: space.id)
    }
    guard let record = known?.record else { throw .unknownMission(id, in: name) }
    return .json(record.encoded())
  }

  /// Publishes a mission. The document is the body, or content sent before: `?document=SHA256`.
  func publish(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let id = try Self.missionID(context)
    let isNewKey = context.request.query["newKey"] == "true"
    guard !isNewKey || context.isServerAdmin else {
      throw Problem(
        .forbidden,
        "the key signs the missions of all spaces: only an admin of all spaces may replace it "
          + "(newKey), or `ferryd mission publish --new-key` on the server")
    }
    let desk = try missions.service()
    let space = try await core.find(name)
    let source = try await documentSource(context.request, of: space)
    let memory = try await memory.grant(Self.memory(of: source.size), context)
    defer { withExtendedLifetime(memory) {} }
    let document = try await document(source, context.request, in: name, desk)
    let manifest: MissionManifest
    do {
      manifest = try MissionManifest.publication(decoding: document, in: name, as: id)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
    let share = try Self.share(context.request, of: manifest)
    let record = try await missions.call { () async throws(MissionFailure) in
      try await desk.publish(
        manifest, in: space, ownContentOnly: true, isNewKey: isNewKey, share: share,
        by: context.principal ?? .anonymous)
    }
    return .json(record.encoded())
  }

  /// Reads the query `rollout` of a bundle's publication.
  private static func share(
    _ request: HTTPRequest, of manifest: MissionManifest
  ) throws(Problem) -> BundleShare {
    guard let text = request.query["rollout"] else { return .all }
    guard manifest.bundle != nil, let share = Int64(text).flatMap({ BundleShare(hundredths: $0) })
    else {
      throw Problem(
        .malformedMessage,
        "rollout is for bundles: a number from 0 to 10000, in hundredths of a percent")
    }
    return share
  }

  func retract(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let id = try Self.missionID(context)
    let space = try await core.find(name)
    let mark = core.mark(context.principal ?? .anonymous)
    let wasThere = try await core.ask { (store) async throws(StoreError) in
      try await store.retractMission(id, in: space.id, now: mark.at, by: mark)
    }
    guard wasThere else { throw .unknownMission(id, in: name) }
    return HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])
  }

  /// Bytes for the work on a manifest: as JSON before and after, as values, and a page of the
  /// missions beside it.
  private static func memory(of document: Int64) -> Int {
    MissionPage.bytesMax * 6 + Int(clamping: document) * 6
  }

  /// Returns the size of a publication's document, and the hash if it was sent before.
  private func documentSource(
    _ request: HTTPRequest, of space: SpaceSummary
  ) async throws(Problem) -> (size: Int64, hash: ContentHash?) {
    guard let text = request.query["document"] else { return (Int64(request.body.count), nil) }
    let missing = Problem.missingDocument(text, in: space.name)
    guard let hash = ContentHash(text) else { throw missing }
    let held = try await core.ask { (store) async throws(StoreError) in
      try await store.heldBlobs(among: [hash], in: space.id)
    }
    guard let blob = held.first else { throw missing }
    return (min(blob.size, Int64(MissionLimits.standard.manifestBytes)), hash)
  }

  private func document(
    _ source: (size: Int64, hash: ContentHash?), _ request: HTTPRequest, in space: SpaceName,
    _ desk: MissionService
  ) async throws(Problem) -> [UInt8] {
    guard let hash = source.hash else { return request.body }
    let limit = Int(source.size)
    let bytes = try await missions.call { () async throws(MissionFailure) in
      try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.content(of: hash, limit: limit)
      }
    }
    guard let bytes else { throw .missingDocument(hash.description, in: space) }
    return bytes
  }

  private static func missionID(_ context: RequestContext) throws(Problem) -> MissionID {
    guard let id = MissionID(context.match.itemText ?? "") else {
      throw Problem(
        .malformedMessage,
        "a mission's name has 1 to 128 characters of A–Z a–z 0–9 . _ - and begins with a letter or "
          + "digit")
    }
    return id
  }
}

extension Problem {
  fileprivate static func unknownMission(_ id: MissionID, in space: SpaceName) -> Problem {
    Problem(.notFound, "there is no mission \(id) in space \(space)")
  }

  fileprivate static func missingDocument(_ text: String, in space: SpaceName) -> Problem {
    Problem(
      .contentMismatch, "document “\(text.prefix(80))” was not sent to space \(space)")
  }
}
