import FerryNetworking

/// Decides the use of a kept answer: by the request's rule and the answer's fields (RFC 9111 §4).
///
/// A lifetime in the rule replaces the freshness fields of an answer of status 2xx: `max-age`,
/// `Expires`, and also `no-cache` and `must-revalidate`. It counts from the answer's arrival, so no
/// server's clock matters.
///
/// Another lifetime in the rule is for answers without these fields: it replaces the guess.
///
/// The rule decides whether a stale answer serves while the server is unreachable, and not the
/// server (`stale-if-error`, RFC 5861). But an answer with `no-cache` or `must-revalidate` never
/// does (§4.2.4), unless the rule has a lifetime.
package struct CachePolicy: Sendable {
  private let options: CacheOptions
  private let request: CacheControl

  /// Creates the policy for a request with these fields.
  package init(options: CacheOptions, headers: TransportHeaders = [:]) {
    self.options = options
    request = CacheControl(headers)
  }

  /// Returns the permitted use of `head` at a time in milliseconds since 1970.
  package func judge(_ head: CachedHead, now: Int64) -> CacheJudgement {
    let response = CacheControl(head.headers)
    let own = 200..<300 ~= head.status ? options.lifetime.map(\.milliseconds) : nil
    let unstated = 200..<300 ~= head.status ? options.unstatedLifetime?.milliseconds : nil
    let lifetime = own ?? Freshness.lifetime(of: head, unstated: unstated)
    let age =
      own == nil ? Freshness.age(of: head, now: now) : Freshness.residence(of: head, now: now)
    let isOverdue = age.map { $0 >= lifetime } ?? true
    let isNeverFresh = own == nil && response.has("no-cache")
    let mustConfirm =
      isNeverFresh || own == nil && isOverdue && response.has("must-revalidate")
    var judgement = CacheJudgement(
      age: age ?? 0, isOverdue: isOverdue, validators: validators(of: head))
    if let age {
      let slack = mustConfirm ? 0 : request.maxStale * 1000
      judgement.isFresh =
        !isNeverFresh && !request.has("no-cache") && isWanted(age)
        && age + wantedRest < lifetime + slack
    }
    judgement.servesOffline = !mustConfirm && options.staleWhenOffline
    return judgement
  }

  /// Returns the newest of the matching answers with the request's key.
  package static func select(
    _ heads: [CachedHead], for request: TransportHeaders
  ) -> CachedHead? {
    heads.filter { $0.variant.matches(request) }
      .max { ($0.received, $0.id) < ($1.received, $1.id) }
  }

  /// Returns true if the request's `max-age` accepts an age (§5.2.1.1).
  private func isWanted(_ age: Int64) -> Bool {
    request.seconds("max-age").map { age <= $0 * 1000 } ?? true
  }

  /// The request's `min-fresh` (§5.2.1.3), in milliseconds.
  private var wantedRest: Int64 { (request.seconds("min-fresh") ?? 0) * 1000 }

  /// Returns the fields of the request for a confirmation of the answer (§4.3.1).
  private func validators(of head: CachedHead) -> TransportHeaders {
    guard options.revalidate else { return [:] }
    var fields = TransportHeaders()
    if let tag = head.headers["ETag"] { fields.add("If-None-Match", tag) }
    if let modified = head.headers["Last-Modified"],
      HTTPDate.parse(modified, now: head.received / 1000) != nil
    {
      fields.add("If-Modified-Since", modified)
    }
    return fields
  }
}

/// The permitted use of a kept answer.
package struct CacheJudgement: Sendable, Equatable {
  /// The age in milliseconds; zero if it is unknown.
  package var age: Int64
  /// True if it serves without a request to the server.
  package var isFresh = false
  /// True if it exceeds its lifetime, even if it serves.
  package var isOverdue: Bool
  /// True if it serves while the server is unreachable.
  package var servesOffline = false
  /// The fields for a confirming request; empty if this is impossible.
  package var validators: TransportHeaders

  init(age: Int64, isOverdue: Bool, validators: TransportHeaders) {
    self.age = age
    self.isOverdue = isOverdue
    self.validators = validators
  }
}

extension Duration {
  /// The duration in whole milliseconds, at most a thousand years.
  var milliseconds: Int64 {
    let parts = components
    let seconds = min(max(parts.seconds, 0), 31_557_600_000)
    return seconds * 1000 + max(0, parts.attoseconds) / 1_000_000_000_000_000
  }
}
