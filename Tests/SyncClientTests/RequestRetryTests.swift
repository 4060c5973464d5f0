import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Failures of a request in, steps out.
@Suite("The retries of a request", .hangLimit)
struct RequestRetryTests {
  private typealias Failure = RequestRetry.Failure

  private static let offline = ReplicaError.offline("no route")
  private static let wrong = ReplicaError.refused(Problem(.unauthorized, "no"))

  private static let steps: [(RequestRetry.Failure, RequestRetry.Step)] = [
    (Failure(error: offline), .retry(after: .seconds(1))),
    (Failure(error: offline, isTimedOut: true), .fail),
    (Failure(error: offline, pause: .seconds(10)), .retry(after: .seconds(1))),
    (Failure(error: offline, pause: .seconds(11)), .fail),
    (Failure(error: offline, isForeign: true), .retry(after: .seconds(1))),
    (Failure(error: wrong), .fail),
    (Failure(error: wrong, isForeign: true), .failForeign),
    (Failure(error: wrong, pause: .seconds(11), isForeign: true), .fail),
    (Failure(error: .cancelled), .fail),
  ]

  @Test("a temporary failure is repeated, unless the user has waited long enough", arguments: steps)
  func step(_ failure: RequestRetry.Failure, _ step: RequestRetry.Step) {
    var retry = RequestRetry(pauseMax: .seconds(10))
    #expect(retry.handle(failure) { .seconds($0) } == step)
  }

  @Test("each failure counts, and the last attempt ends the request")
  func attempts() {
    var retry = RequestRetry(pauseMax: .seconds(10))
    let failure = Failure(error: Self.offline)
    let steps = (0..<3).map { _ in retry.handle(failure) { $0 < 3 ? .seconds($0) : nil } }
    #expect(steps == [.retry(after: .seconds(1)), .retry(after: .seconds(2)), .fail])
  }

  @Test("a failure without a retry asks for no pause")
  func noPause() {
    var retry = RequestRetry(pauseMax: .seconds(10))
    var asked = 0
    for failure in [Failure(error: Self.wrong), Failure(error: Self.offline, isTimedOut: true)] {
      _ = retry.handle(failure) { _ in
        asked += 1
        return .zero
      }
    }
    #expect(asked == 0)
  }
}
