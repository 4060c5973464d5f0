import Networking

/// What is to be done with a kept answer: the request's own rule (seed row S6.2) joined with the
/// answer's fields (RFC 9111 §4).
///
/// A lifetime of the rule takes the place of everything that an answer of status 2xx says about
/// its freshness: `max-age`, `Expires`, and also `no-cache` and `must-revalidate`. It counts from
/// the answer's arrival, so that no server's clock matters.
///
/// Whether a stale answer serves while the server cannot be reached is the rule's to say, not the
/// server's (`stale-if-error`, RFC 5861); but an answer with `no-cache` or `must-revalidate` never
/// does (§4.2.4), unless the rule gives a lifetime.
package struct CachePolicy: Sendable {
  private let options: CacheOptions
  private let request: CacheControl

  /// The policy for a request with these fields.
  package init(options: CacheOptions, headers: TransportHeaders = [:]) {
    self.options = options
    request = CacheControl(headers)
  }

  /// What may be done with `head` at a time in milliseconds since 1970.
  package func judge(_ head: CachedHead, now: Int64) -> CacheJudgement {
    let response = CacheControl(head.headers)
    let own = 200..<300 ~= head.status ? options.lifetime.map(\.milliseconds) : nil
    let lifetime = own ?? Freshness.lifetime(of: head)
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

  /// The kept answer to use of those with the request's key: the newest of those that match it.
  package static func select(
    _ heads: [CachedHead], for request: TransportHeaders
  ) -> CachedHead? {
    heads.filter { $0.variant.matches(request) }
      .max { ($0.received, $0.id) < ($1.received, $1.id) }
  }

  /// `max-age` of the request (§5.2.1.1).
  private func isWanted(_ age: Int64) -> Bool {
    request.seconds("max-age").map { age <= $0 * 1000 } ?? true
  }

  /// `min-fresh` of the request (§5.2.1.3), in milliseconds.
  private var wantedRest: Int64 { (request.seconds("min-fresh") ?? 0) * 1000 }

  /// The fields that ask whether the answer still holds (§4.3.1).
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

/// What may be done with a kept answer.
package struct CacheJudgement: Sendable, Equatable {
  /// How old it is, in milliseconds; zero when nobody knows.
  package var age: Int64
  /// Whether it serves without asking the server.
  package var isFresh = false
  /// Whether it is older than its time, even if it serves.
  package var isOverdue: Bool
  /// Whether it serves while the server cannot be reached.
  package var servesOffline = false
  /// The fields to ask the server with; none when it cannot be asked.
  package var validators: TransportHeaders

  init(age: Int64, isOverdue: Bool, validators: TransportHeaders) {
    self.age = age
    self.isOverdue = isOverdue
    self.validators = validators
  }
}

extension Duration {
  /// Whole milliseconds; what is longer than a thousand years counts as that.
  var milliseconds: Int64 {
    let parts = components
    let seconds = min(max(parts.seconds, 0), 31_557_600_000)
    return seconds * 1000 + max(0, parts.attoseconds) / 1_000_000_000_000_000
  }
}
