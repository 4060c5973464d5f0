import FerryConformance
import FerryTestSupport
import Testing

/// The oracle on deletes refused by Ferry.
@Suite(.hangLimit)
struct DeletesAllowedTests {
  private func found(_ statement: String, isRefused: Bool) -> Int {
    DeletesAllowed.judge(
      device: "one", statement: statement, reason: "an error", isRefused: isRefused
    ).count
  }

  @Test("the oracle finds deletes that Ferry refuses, and no other failures")
  func judging() {
    #expect(found("DELETE FROM essays WHERE id = 'd'", isRefused: true) == 1)
    #expect(found("UPDATE essays SET a = 'x'", isRefused: true) == 0)
    #expect(found("DELETE FROM essays WHERE id = 'd'", isRefused: false) == 0)
  }
}
