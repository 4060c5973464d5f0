import FerryPostgres
import Testing

@testable import FerrySyncServer

/// The pauses of a standby or a worker that fails.
@Suite("The rest of a server")
struct ServerRestTests {
  @Test("after a failure, one caller at a time tries the server, until it succeeds")
  func pauses() {
    var rest = ServerRest()
    let start = ContinuousClock.now
    func mayUse(after time: Duration) -> Bool { rest.mayUse(now: start + time) }
    #expect(mayUse(after: .zero))
    rest.failed(now: start)
    #expect(!mayUse(after: .milliseconds(4_999)))
    #expect(mayUse(after: .seconds(5)))
    #expect(!mayUse(after: .seconds(6)), "another caller tries it")
    rest.failed(now: start + .seconds(8))
    #expect(!mayUse(after: .seconds(12)))
    #expect(mayUse(after: .seconds(13)))
    rest.succeeded()
    #expect(mayUse(after: .seconds(13)))
    #expect(mayUse(after: .seconds(14)))
  }

  @Test("only an error of the server itself lets it rest")
  func faults() {
    func isFault(_ kind: PostgresError.Kind, _ state: String? = nil) -> Bool {
      var error = PostgresError(kind, "")
      error.sqlState = state
      return ServerRest.isFault(error)
    }
    for kind in [PostgresError.Kind.connectionFailed, .connectionLost, .noAnswer, .readOnly] {
      #expect(isFault(kind))
    }
    for state in ["08006", "42P01", "42501", "53300", "57P01"] { #expect(isFault(.server, state)) }
    for state in ["40P01", "40001", "23505", "55P03"] { #expect(!isFault(.server, state)) }
    #expect(!isFault(.poolClosed))
  }
}
