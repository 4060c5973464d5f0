import FerryPlatform
import FerryProtocol
import Foundation

/// Dates as text in UTC with milliseconds, such as `2026-11-23T14:05:09.250Z` (RFC 3339). Such texts
/// sort by time, and SQLite's date functions read them.
enum DateText {
  private static let dayMilliseconds: Int64 = 86_400_000

  /// Returns the text; `nil` for a date outside of the years 0 to 9999.
  static func text(_ time: Date) -> String? {
    let milliseconds = (time.timeIntervalSince1970 * 1_000).rounded()
    guard abs(milliseconds) < 1e15 else { return nil }
    let total = Int64(milliseconds)
    let days = (total >= 0 ? total : total - dayMilliseconds + 1) / dayMilliseconds
    let date = CivilDate(days: days)
    guard (0...9999).contains(date.year) else { return nil }
    let rest = total - days * dayMilliseconds
    var bytes = [UInt8](repeating: UInt8(ascii: "Z"), count: 24)
    func put(_ number: Int64, _ place: Int, _ width: Int, then mark: Unicode.Scalar) {
      var number = number
      for index in (place..<place + width).reversed() {
        bytes[index] = UInt8(ascii: "0") + UInt8(number % 10)
        number /= 10
      }
      bytes[place + width] = UInt8(ascii: mark)
    }
    put(date.year, 0, 4, then: "-")
    put(date.month, 5, 2, then: "-")
    put(date.day, 8, 2, then: "T")
    put(rest / 3_600_000, 11, 2, then: ":")
    put(rest / 60_000 % 60, 14, 2, then: ":")
    put(rest / 1_000 % 60, 17, 2, then: ".")
    put(rest % 1_000, 20, 3, then: "Z")
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads `YYYY-MM-DD`, then optionally `T` or a space and `HH:MM`, `:SS`, a fraction, and `Z` or
  /// an offset; `nil` for anything else.
  static func date(_ text: String) -> Date? {
    var bytes = Array(text.utf8)[...]
    func accept(_ marks: String) -> Bool {
      guard let first = bytes.first, marks.utf8.contains(first) else { return false }
      bytes.removeFirst()
      return true
    }
    func number(_ width: Int, _ range: ClosedRange<Int64>) -> Int64? {
      let digits = bytes.prefix(width)
      guard digits.count == width, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
      }
      bytes.removeFirst(width)
      let number = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
      return range.contains(number) ? number : nil
    }
    guard let year = number(4, 0...9999), accept("-"), let month = number(2, 1...12), accept("-"),
      let day = number(2, 1...31)
    else { return nil }
    let date = CivilDate(year: year, month: month, day: day)
    guard CivilDate(days: date.days) == date else { return nil }
    var seconds = date.days * 86_400
    var fraction = 0.0
    if accept("T t") {
      guard let hour = number(2, 0...23), accept(":"), let minute = number(2, 0...59) else {
        return nil
      }
      seconds += hour * 3_600 + minute * 60
      if accept(":") {
        guard let second = number(2, 0...59) else { return nil }
        seconds += second
        if accept(".") {
          let digits = bytes.prefix { (0x30...0x39).contains($0) }
          guard let value = Double("0." + String(decoding: digits, as: UTF8.self)),
            !digits.isEmpty
          else { return nil }
          fraction = value
          bytes.removeFirst(digits.count)
        }
      }
      let sign: Int64 = bytes.first == UInt8(ascii: "-") ? -1 : 1
      if !accept("Zz"), accept("+-") {
        guard let hours = number(2, 0...23), accept(":"), let minutes = number(2, 0...59) else {
          return nil
        }
        seconds -= sign * (hours * 3_600 + minutes * 60)
      }
    }
    guard bytes.isEmpty else { return nil }
    return Date(timeIntervalSince1970: Double(seconds) + fraction)
  }
}
