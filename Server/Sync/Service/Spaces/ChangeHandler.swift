import FerryHTTPServer
import FerryProtocol

/// Answers devices that pull changes, fetch records, or compare themselves with the space.
struct ChangeHandler: Sendable {
  let core: ServiceCore
  let observer: DeviceObserver

  /// Returns a page of the pull list.
  func list(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let query = context.request.query
    var request = try ChangesQuery.read({ query[$0] }, limits: core.limits).get()
    request.protocolVersion = try context.protocolVersion()
    request.principal = admission.principal
    context.device = request.device
    let space = try await core.find(name)
    let (now, wanted) = (core.clock.wall(), request)
    let page = try await core.ask { (store) async throws(StoreError) in
      try await store.changes(in: space.id, wanted, now: now)
    }.get()
    core.metrics.countPage(changes: PageCount.read(page))
    observer.recordPull(wanted.cursor, context, space.id)
    return .json(page)
  }

  /// Transactions in which one request may bring the sums up to date. A first comparison of a
  /// large space is answered with how far they are, and asked for again.
  static let foldsPerRequest = 10

  /// Compares a device with the space.
  func digests(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query: DigestQuery
    do {
      query = try DigestQuery(decoding: context.request.body, limits: core.limits)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
    let space = try await core.find(name)
    var folds = 0
    while true {
      let answer = try await core.ask { (store) async throws(StoreError) in
        try await store.digests(in: space.id, query)
      }.get()
      guard answer.content == .behind, folds < Self.foldsPerRequest else {
        return .json(answer.encoded())
      }
      // All parts together may take seconds: others have their turns at the memory between two.
      _ = PageRoom.current?.passOn()
      _ = try await core.ask { (store) async throws(StoreError) in
        try await store.foldDigests(in: space.id)
      }
      folds += 1
    }
  }

  /// Returns the whole state of the records listed in the body.
  func records(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let wanted = try core.read(context.request.body, RecordsRequest.init(decoding:limits:))
    let space = try await core.find(name)
    let now = core.clock.wall()
    let page = try await core.ask { (store) async throws(StoreError) in
      try await store.records(wanted.keys, in: space.id, now: now)
    }.get()
    return .json(page)
  }
}
