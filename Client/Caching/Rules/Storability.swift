import FerryNetworking
import FerryPlatform

/// Decides if a private cache may keep an answer, and with which fields (RFC 9111 §3). `private`
/// and `Authorization` prevent nothing, because the key separates users.
package enum Storability {
  /// Fields about a connection; they are never kept (§3.1).
  private static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
    "proxy-authorization", "proxy-connection", "te", "transfer-encoding", "upgrade",
  ]

  /// Returns true if an answer may be kept, and could ever serve.
  ///
  /// A lifetime in the request's rule replaces the server's permission for a status 2xx. `no-store`
  /// always wins, on either side.
  package static func allows(
    _ response: NetworkResponse, for request: CacheableRequest, received: Int64
  ) -> Bool {
    let control = CacheControl(response.headers)
    guard request.method == .get, request.headers["Range"] == nil,
      !CacheControl(request.headers).has("no-store"), permitsKeeping(response, control),
      response.status >= 200, response.status != 206, response.status != 304,
      let variant = Variant(of: response.headers, for: request.headers)
    else { return false }
    let isExplicit =
      control.has("public") || control.has("private") || control.has("max-age")
      || response.headers["Expires"] != nil
      || request.options.lifetime != nil && response.isSuccess
    guard isExplicit || Freshness.heuristicStatuses.contains(response.status) else { return false }
    let head = CachedHead(
      status: response.status, headers: response.headers, requested: received, received: received,
      variant: variant)
    return isUseful(head, options: request.options)
  }

  /// Returns the fields to keep.
  package static func kept(_ headers: TransportHeaders) -> TransportHeaders {
    let named = headers.values(of: "Connection").flatMap(FieldList.members).map {
      $0.lowercasedASCII
    }
    let dropped = connectionFields.union(named)
    var kept = TransportHeaders()
    for field in headers.fields where !dropped.contains(field.name.lowercasedASCII) {
      kept.add(field.name, field.value)
    }
    return kept
  }

  /// Returns true if the fields permit keeping. `must-understand` overrides `no-store` if the
  /// status is understood (§5.2.2.3).
  private static func permitsKeeping(_ response: NetworkResponse, _ control: CacheControl) -> Bool {
    let isUnderstood = Freshness.heuristicStatuses.contains(response.status)
    if control.has("must-understand") { return isUnderstood }
    return !control.has("no-store")
  }

  /// Returns true if a kept answer could serve: it is fresh, or can be confirmed, or serves
  /// offline.
  private static func isUseful(_ head: CachedHead, options: CacheOptions) -> Bool {
    let judgement = CachePolicy(options: options).judge(head, now: head.received)
    return judgement.isFresh || judgement.servesOffline || !judgement.validators.fields.isEmpty
  }
}
