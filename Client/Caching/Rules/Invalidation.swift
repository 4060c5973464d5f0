import Networking

/// What a request that changes something makes worthless (RFC 9111 §4.4).
package enum Invalidation {
  /// The endpoints, in canonical form, of which nothing kept may serve any more.
  ///
  /// Those are the endpoint asked, with whatever parameters, and those that `Location` and
  /// `Content-Location` name on the same server. Nothing when the method is safe or the request
  /// failed.
  package static func endpoints(
    after response: NetworkResponse, for request: CacheableRequest
  ) -> [String] {
    guard request.method != .get, request.method != .head, 200..<400 ~= response.status else {
      return []
    }
    let endpoint = ContentAddress.canonical(request.endpoint)
    let named = ["Location", "Content-Location"].compactMap { name in
      response.headers[name].flatMap { ContentAddress.resolved($0, against: endpoint) }
    }
    let origin = ContentAddress.origin(of: endpoint)
    let changed = [endpoint] + named.filter { ContentAddress.origin(of: $0) == origin }
    return Set(changed + changed.map { String($0.prefix { $0 != "?" }) }).sorted()
  }
}
