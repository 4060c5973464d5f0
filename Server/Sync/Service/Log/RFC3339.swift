import FerryPlatform

/// Times as RFC 3339 writes them, in UTC with milliseconds.
package enum RFC3339 {
  /// - Parameter milliseconds: Since 1970.
  package static func text(milliseconds: Int64) -> String {
    let day = milliseconds.floorDivided(by: 86_400_000)
    let time = milliseconds - day * 86_400_000
    let date = CivilDate(days: day)
    let parts = [
      padded(time / 3_600_000, 2), padded(time / 60_000 % 60, 2), padded(time / 1_000 % 60, 2),
    ]
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
      + parts.joined(separator: ":") + ".\(padded(time % 1_000, 3))Z"
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension Int64 {
  fileprivate func floorDivided(by divisor: Int64) -> Int64 {
    let quotient = self / divisor
    return self % divisor < 0 ? quotient - 1 : quotient
  }
}
