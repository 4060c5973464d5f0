import FerryConformance
import FerryTestSupport
import Testing

/// The oracle on deletes refused by Ferry.
@Suite(.hangLimit)
struct DeletesAllowedTests {
  private func found(_ statement: String, _ reason: String) -> Int {
    DeletesAllowed.judge(device: "one", statement: statement, reason: reason).count
  }

  @Test("the oracle finds deletes that Ferry refuses, and no other failures")
  func judging() {
    let tooLarge = "ferry: the row takes 20000 bytes as JSON"
    #expect(found("DELETE FROM essays WHERE id = 'd'", tooLarge) == 1)
    #expect(found("UPDATE essays SET a = 'x'", tooLarge) == 0)
    #expect(found("DELETE FROM essays WHERE id = 'd'", "database or disk is full") == 0)
  }
}
