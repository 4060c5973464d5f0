import FerryHTTPServer
import FerryProtocol

/// Returns the committed transactions of a space to administrators, as lines of JSON (SPEC.md §39).
struct FeedHandler: Sendable {
  let core: ServiceCore

  func list(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let (limit, since) = (try query.limit(), try query.feedCursor())
    let space = try await core.find(name)
    let page = try await core.ask { (store) async throws(StoreError) in
      try await SpaceFeed(store).page(
        in: space.id, after: since, limit: limit, characters: InspectionQuery.characters)
    }.get()
    return HTTPResponse(
      status: 200,
      headers: ["Content-Type": "application/x-ndjson", "Cache-Control": "no-store"],
      body: .bytes(page.lines), compressible: true)
  }
}

extension InspectionQuery {
  /// Returns the place after which a feed continues; `nil` for the beginning.
  fileprivate func feedCursor() throws(Problem) -> Cursor? {
    guard let text = values["since"] else { return nil }
    guard let cursor = Cursor(text) else {
      throw Problem(
        .malformedMessage,
        "since is the cursor of a line of the feed, or of the last page of a pull list")
    }
    return cursor
  }
}
