/// Times as RFC 3339 writes them, in UTC with milliseconds.
package enum RFC3339 {
  /// - Parameter milliseconds: Since 1970.
  package static func text(milliseconds: Int64) -> String {
    let day = milliseconds.floorDivided(by: 86_400_000)
    let time = milliseconds - day * 86_400_000
    let (year, month, dayOfMonth) = civil(day)
    let parts = [
      padded(time / 3_600_000, 2), padded(time / 60_000 % 60, 2), padded(time / 1_000 % 60, 2),
    ]
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))T"
      + parts.joined(separator: ":") + ".\(padded(time % 1_000, 3))Z"
  }

  /// Returns the proleptic Gregorian date of a day since 1970 (Howard Hinnant, "chrono-Compatible
  /// Low-Level Date Algorithms", `civil_from_days`).
  private static func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = shifted.floorDivided(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
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
