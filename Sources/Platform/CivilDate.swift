/// A date of the proleptic Gregorian calendar, counted in eras of 400 years (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms").
package struct CivilDate: Sendable, Equatable {
  package let year: Int64
  /// From 1.
  package let month: Int64
  /// From 1.
  package let day: Int64

  package init(year: Int64, month: Int64, day: Int64) {
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// Returns the date of a day, counted from 1970-01-01.
  package init(days: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    // The year begins with March, so a leap day is the last day.
    let month = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * month + 2) / 5 + 1
    year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
    self.month = month < 10 ? month + 3 : month - 9
  }

  /// Days since 1970-01-01. A day after the month's end counts into the next month.
  package var days: Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}
