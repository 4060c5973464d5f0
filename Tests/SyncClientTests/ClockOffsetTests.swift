import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Judging the server's clock", .hangLimit)
struct ClockOffsetTests {
  @Test(
    "a slow network does not look like a wrong clock",
    arguments: [
      (1_000, 1_400, 2_000, 0), (1_000, 1_000, 1_000, 0), (1_000, 5_000, 1_010, 3_995),
      (1_000, 400, 1_200, -700), (1_000, 2_001, 2_000, 501),
    ] as [(Int64, Int64, Int64, Int64)])
  func table(sent: Int64, server: Int64, received: Int64, offset: Int64) {
    #expect(ClockOffset.estimate(sent: sent, server: server, received: received) == offset)
  }
}
