import Testing

@testable import FerrySyncClient

@Suite("Reports of applied changes")
struct AppliedReportTests {
  @Test("a watch reports once after each quiet time, and not while changes arrive")
  func quiet() {
    var rule = AppliedReport()
    #expect(rule.isDue(5) == false)
    #expect(rule.isDue(6) == false)
    #expect(rule.isDue(6) == true)
    // The request failed.
    #expect(rule.isDue(6) == true)
    rule.report(6)
    #expect(rule.isDue(6) == false)
    #expect(rule.isDue(9) == false)
    #expect(rule.isDue(9) == true)
  }
}
