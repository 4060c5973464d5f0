import FerryHTTPServer
import FerryProtocol

// Comparing a device with the space.
extension SyncService {
  /// Transactions in which one request may bring the sums up to date. A first comparison of a
  /// large space is answered with how far they are, and asked for again.
  static let foldsPerRequest = 10

  func digests(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query: DigestQuery
    do {
      query = try DigestQuery(decoding: context.request.body, limits: parts.limits)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
    let space = try await find(name)
    let store = parts.store
    var folds = 0
    while true {
      let answer = try await ask { () async throws(StoreError) in
        try await store.digests(in: space.id, query)
      }.get()
      guard answer.content == .behind, folds < Self.foldsPerRequest else {
        return .json(answer.encoded())
      }
      // All parts together may take seconds: others have their turns at the memory between two.
      _ = PageRoom.current?.passOn()
      _ = try await ask { () async throws(StoreError) in
        try await store.foldDigests(in: space.id)
      }
      folds += 1
    }
  }

  /// Returns the whole state of the records listed in the body.
  func records(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let wanted = try read(context.request.body, RecordsRequest.init(decoding:limits:))
    let space = try await find(name)
    let (store, now) = (parts.store, parts.clock.wall())
    let page = try await ask { () async throws(StoreError) in
      try await store.records(wanted.keys, in: space.id, now: now)
    }.get()
    return .json(page)
  }
}
