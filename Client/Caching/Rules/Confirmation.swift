import FerryNetworking
import FerryPlatform

/// The effect of a 304 on kept answers (RFC 9111 §4.3.4).
package enum Confirmation {
  /// Fields of the kept answer about the body; they stay (§3.2).
  private static let bodyFields: Set<String> = [
    "content-encoding", "content-length", "content-range", "content-type",
  ]

  /// Returns the kept answer confirmed by a 304: the newest with the 304's validator. A 304 without
  /// a validator confirms the answer with the request's validators.
  package static func target(
    of response: NetworkResponse, among heads: [CachedHead], for request: TransportHeaders
  ) -> CachedHead? {
    let matching = heads.filter { $0.variant.matches(request) }
    let confirmed: [CachedHead]
    if let tag = response.headers["ETag"] {
      confirmed = matching.filter { $0.headers["ETag"].map { isSame($0, tag) } ?? false }
    } else if let modified = response.headers["Last-Modified"] {
      confirmed = matching.filter { $0.headers["Last-Modified"] == modified }
    } else {
      confirmed = matching
    }
    return CachePolicy.select(confirmed, for: request)
  }

  /// Returns the kept answer with the fields and the time of a 304.
  package static func renewed(
    _ head: CachedHead, by response: NetworkResponse, requested: Int64, received: Int64
  ) -> CachedHead {
    var renewed = head
    (renewed.requested, renewed.received) = (requested, received)
    let fields = Storability.kept(response.headers).fields
      .filter { !bodyFields.contains($0.name.lowercasedASCII) }
    // If the 304 has no such fields, the age counts from the 304's arrival, not from the former
    // answer.
    for name in ["Date", "Age"] + fields.map(\.name) { renewed.headers[name] = nil }
    for field in fields { renewed.headers.add(field.name, field.value) }
    return renewed
  }

  /// Returns true if validators match: a strong one only an equal one, a weak one an equivalent one
  /// (RFC 9110 §8.8.3.2).
  private static func isSame(_ kept: String, _ given: String) -> Bool {
    given.begins(with: "W/") ? opaque(kept).isSame(as: opaque(given)) : kept.isSame(as: given)
  }

  private static func opaque(_ tag: String) -> Substring {
    tag.rest(after: "W/") ?? tag[...]
  }
}
