import Testing

@testable import FerryMirror

/// The waits of rounds for a reader of the log that is behind.
@Suite("Waits for the log")
struct LogPatienceTests {
  /// Waits in slices of 5 s; returns the number of slices before the end.
  private func slices(_ advances: [Int]) -> Int {
    var patience = LogPatience(at: 0)
    return advances.prefix { patience.waits(after: .seconds(5), at: $0) }.count
  }

  @Test("a round waits as long as the reader advances, and 20 seconds without an advance")
  func advances() {
    #expect(slices([0, 0, 0, 0, 0]) == 3)
    #expect(slices([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]) == 11)
    #expect(slices(Array(1...100)) == 100)
  }
}
