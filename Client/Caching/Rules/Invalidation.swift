import FerryNetworking
import FerryPlatform

/// The kept answers invalidated by a changing request (RFC 9111 §4.4).
package enum Invalidation {
  /// Returns the endpoints, in canonical form, with kept answers that must not serve any more.
  ///
  /// These are the request's endpoint with any parameters, and those named by `Location` and
  /// `Content-Location` on the same server. Empty if the method is safe or the request failed.
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
    return Set(changed + changed.map { String($0.until("?")) }).sorted()
  }
}
