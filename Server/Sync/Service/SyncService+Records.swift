import FerryHTTPServer
import FerryProtocol

extension SyncService {
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
