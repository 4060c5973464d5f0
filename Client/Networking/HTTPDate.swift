import FerryPlatform

/// Dates in HTTP header fields (RFC 9110 §5.6.7).
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Reads all three forms a recipient must accept.
  ///
  /// - Parameters:
  ///   - text: such as `Sun, 06 Nov 1994 08:49:37 GMT`.
  ///   - now: seconds since 1970; decides the century of two-digit years.
  /// - Returns: seconds since 1970, or `nil` if `text` is not a date.
  package static func parse(_ text: String, now: Int64) -> Int64? {
    let words = text.split { " ,-".contains($0) }
    switch words.count {
    case 6 where words[5] == "GMT":
      guard let year = year(words[3], now: now) else { return nil }
      return seconds(year: year, month: words[2], day: words[1], time: words[4])
    case 5:
      guard let year = number(words[4], digits: 4) else { return nil }
      return seconds(year: year, month: words[1], day: words[2], time: words[3])
    default:
      return nil
    }
  }

  private static func number(_ text: Substring, digits: Int) -> Int64? {
    guard text.utf8.count <= digits, text.utf8.allSatisfy({ 48...57 ~= $0 }) else { return nil }
    return Int64(text)
  }

  /// Returns a year; a two-digit year more than 50 years ahead is in the past.
  private static func year(_ text: Substring, now: Int64) -> Int64? {
    guard text.utf8.count == 2 else { return number(text, digits: 4) }
    guard let short = number(text, digits: 2) else { return nil }
    let thisYear = 1970 + now / 31_556_952
    let year = thisYear - thisYear % 100 + short
    return year > thisYear + 50 ? year - 100 : year
  }

  private static func seconds(
    year: Int64, month: Substring, day: Substring, time: Substring
  ) -> Int64? {
    let clock = time.parts(at: ":")
      .compactMap { number($0, digits: 2) }
    guard let month = months.firstIndex(of: String(month)), let day = number(day, digits: 2),
      1...31 ~= day, clock.count == 3, clock[0] < 24, clock[1] < 60, clock[2] <= 60
    else { return nil }
    let days = CivilDate(year: year, month: Int64(month) + 1, day: day).days
    return ((days * 24 + clock[0]) * 60 + clock[1]) * 60 + clock[2]
  }
}
