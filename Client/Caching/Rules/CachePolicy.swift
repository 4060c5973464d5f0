import Networking

/// What is to be done with a kept answer: the request's own rule (seed row S6.2) joined with the
/// answer's fields (RFC 9111 §4).
///
/// A lifetime of the rule takes the place of everything that an answer of status 2xx says about
/// its freshness: `max-age`, `Expires`, and also `no-cache` and `must-revalidate`. It counts from
/// the answer's arrival, so that no server's clock matters.
package struct CachePolicy: Sendable {
  private let options: CacheOptions
  private let request: CacheControl

  /// The policy for a request with these fields.
  package init(options: CacheOptions, headers: TransportHeaders = [:]) {
    self.options = options
    request = CacheControl(headers)
  }

  /// Whether the request refuses to wait for a server (§5.2.1.7).
  package var wantsOnlyKept: Bool { request.has("only-if-cached") }

  /// What may be done with `head` at a time in milliseconds since 1970.
  package func judge(_ head: CachedHead, now: Int64) -> CacheJudgement {
    let response = CacheControl(head.headers)
    let own = 200..<300 ~= head.status ? options.lifetime.map(\.milliseconds) : nil
    let lifetime = own ?? Freshness.lifetime(of: head)
    let age =
      own == nil ? Freshness.age(of: head, now: now) : Freshness.residence(of: head, now: now)
    let mustConfirm = own == nil && (response.has("no-cache") || response.has("must-revalidate"))
    var judgement = CacheJudgement(age: age ?? 0, validators: validators(of: head))
    judgement.isOverdue = age.map { $0 >= lifetime } ?? true
    if let age {
      let isNeverFresh = own == nil && response.has("no-cache") || request.has("no-cache")
      let slack = mustConfirm ? 0 : request.maxStale * 1000
      judgement.isFresh =
        !isNeverFresh && isWanted(age) && age + wantedRest < addingSafely(lifetime, slack)
    }
    let overdue = age.map { $0 - lifetime } ?? .max
    judgement.servesOffline =
      !mustConfirm && (options.staleWhenOffline || overdue <= grace(response))
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

  /// For how long over its time an answer may serve while the server cannot be reached, in
  /// milliseconds: `stale-if-error` of either side (RFC 5861 §4).
  private func grace(_ response: CacheControl) -> Int64 {
    let granted = request.seconds("stale-if-error") ?? response.seconds("stale-if-error")
    return granted.map { $0 * 1000 } ?? -1
  }

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

  private func addingSafely(_ one: Int64, _ other: Int64) -> Int64 {
    let (sum, overflow) = one.addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

/// What may be done with a kept answer.
package struct CacheJudgement: Sendable, Equatable {
  /// How old it is, in milliseconds; zero when nobody knows.
  package var age: Int64
  /// Whether it serves without asking the server.
  package var isFresh = false
  /// Whether it is older than its time, even if it serves.
  package var isOverdue = false
  /// Whether it serves while the server cannot be reached.
  package var servesOffline = false
  /// The fields to ask the server with; none when it cannot be asked.
  package var validators: TransportHeaders

  init(age: Int64, validators: TransportHeaders) {
    self.age = age
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
