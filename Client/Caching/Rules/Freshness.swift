import FerryNetworking

/// The freshness lifetime of an answer by the fields in it, and the age (RFC 9111 §4.2). For a
/// private cache: it ignores `s-maxage`.
package enum Freshness {
  /// The longest guessed lifetime, in milliseconds.
  package static let guessMax: Int64 = 24 * 3600 * 1000
  /// How far the clock may be behind an answer's arrival before the answer's age counts as unknown.
  static let clockStepMax: Int64 = 60 * 1000

  /// Statuses of answers that may be kept without explicit permission (RFC 9110 §15.1).
  package static let heuristicStatuses: Set<Int> = [
    200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501,
  ]

  /// Returns the freshness lifetime in milliseconds (§4.2.1): `max-age`, else `Expires` less
  /// `Date`, else a guess.
  ///
  /// - Parameter unstated: replaces the guess.
  package static func lifetime(of head: CachedHead, unstated: Int64? = nil) -> Int64 {
    let control = CacheControl(head.headers)
    if let seconds = control.seconds("max-age") { return seconds * 1000 }
    let date = date(of: head)
    if let expires = head.headers.values(of: "Expires").first {
      guard let end = HTTPDate.parse(expires, now: head.received / 1000) else { return 0 }
      return max(0, end - date) * 1000
    }
    return unstated ?? guessedLifetime(of: head, control: control, date: date)
  }

  /// Returns a tenth of the time since the content's last change, up to ``guessMax`` (§4.2.2).
  private static func guessedLifetime(
    of head: CachedHead, control: CacheControl, date: Int64
  ) -> Int64 {
    guard heuristicStatuses.contains(head.status) || control.has("public"),
      let modified = head.headers["Last-Modified"].flatMap({
        HTTPDate.parse($0, now: head.received / 1000)
      })
    else { return 0 }
    return min(max(0, date - modified) * 100, guessMax)
  }

  /// Returns the age in milliseconds (§4.2.3); `nil` if the clock is behind the arrival.
  package static func age(of head: CachedHead, now: Int64) -> Int64? {
    guard let resident = residence(of: head, now: now) else { return nil }
    let apparent = max(0, (head.received / 1000 - date(of: head)) * 1000)
    let stated =
      head.headers["Age"].flatMap { FieldList.members(of: $0).first }
      .flatMap(DeltaSeconds.parse) ?? 0
    let corrected = stated * 1000 + max(0, head.received - head.requested)
    return max(apparent, corrected) + resident
  }

  /// Returns the time since the arrival, in milliseconds; `nil` if the clock is behind it.
  package static func residence(of head: CachedHead, now: Int64) -> Int64? {
    let resident = now - head.received
    return resident < -clockStepMax ? nil : max(0, resident)
  }

  /// Returns `Date` in seconds since 1970, or the time of arrival if it is missing or unreadable.
  private static func date(of head: CachedHead) -> Int64 {
    let received = head.received / 1000
    return head.headers["Date"].flatMap { HTTPDate.parse($0, now: received) } ?? received
  }
}
