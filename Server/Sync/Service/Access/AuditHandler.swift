import FerryHTTPServer
import FerryProtocol

/// Shows the audit log to administrators of all spaces.
struct AuditHandler: Sendable {
  let core: ServiceCore

  func list(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    guard caller.grants.isServerAdmin else {
      throw Problem(.forbidden, "the audit log is for admins of all spaces")
    }
    let query = try Self.auditQuery(context.request.query)
    let entries = try await core.ask { (store) async throws(StoreError) in
      try await store.audit(query)
    }
    var json = JSONWriter(capacity: 256 + entries.count * 256)
    json.object { json in
      json.key("entries")
      json.array(of: entries)
    }
    return .json(json.finish())
  }

  private static func auditQuery(_ query: [String: String]) throws(Problem) -> AuditQuery {
    func number(
      _ name: String, in range: ClosedRange<Int64> = 0...Int64.max
    ) throws(Problem) -> Int64? {
      guard let text = query[name] else { return nil }
      return try InspectionQuery.number(text, name, in: range)
    }
    var space: SpaceName?
    if let text = query["space"] {
      space = SpaceName(text)
      guard space != nil else { throw Problem(.malformedMessage, "space is a space's name") }
    }
    return AuditQuery(
      space: space, since: try number("since") ?? 0, after: try number("after") ?? 0,
      limit: Int(
        clamping: try number("limit", in: 1...Int64(AuditQuery.countMax))
          ?? Int64(AuditQuery.countMax)))
  }
}

extension AuditEntry: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("number", number)
      json.member("time", at)
      json.member("principal", principal)
      json.member("action", action)
      json.member("space", space?.value)
      json.member("detail", detail)
    }
  }
}
