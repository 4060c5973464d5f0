import FerryProtocol
import FerryTestSupport
import Testing

@Suite("The order of values", .hangLimit)
struct ValueOrderTests {
  static let ascending: [Value] = [
    .real(-.infinity), .real(-0x1p63 * 2), .integer(.min), .real(-0x1p63), .integer(.min + 1),
    .integer(-1), .real(-0.5), .integer(0), .real(-0.0), .real(0.0), .real(.leastNonzeroMagnitude),
    .integer(1),
    .real(1), .real(1.5), .integer(9_007_199_254_740_992), .real(9_007_199_254_740_992),
    .integer(9_007_199_254_740_993), .integer(.max), .real(0x1p63), .real(.infinity), .text(""),
    .text("B"), .text("a"), .text("e\u{301}"), .text("é"), .blob([]), .blob([0]), .blob([1]),
  ]

  @Test("numbers compare by their exact value; texts and blobs compare by their bytes")
  func order() {
    for (index, value) in Self.ascending.enumerated() {
      for (other, second) in Self.ascending.enumerated() {
        #expect(
          ValueOrder.precedes(value, second) == (index < other), "\(value) before \(second)")
      }
    }
  }

  @Test("NULL gives way to every value, and either order results in the same value")
  func extremes() {
    for first in Self.ascending + [nil] {
      for second in Self.ascending + [nil] {
        for policy in [ConflictPolicy.max, .min] {
          let stays = ValueOrder.extreme(first, second, policy)
          #expect(stays == ValueOrder.extreme(second, first, policy))
          #expect(stays != nil || first == second)
        }
      }
    }
  }
}
