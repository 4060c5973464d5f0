import FerryPostgres
import Testing

@testable import FerrySyncServer

/// The pauses of a standby or a worker that fails.
@Suite("The rest of a server")
struct ServerRestTests {
  /// A server in a test's time.
  private struct Server {
    var rest = ServerRest()
    let start = ContinuousClock.now

    mutating func begin(_ milliseconds: Int) -> ServerRest.Attempt? {
      rest.begin(now: start + .milliseconds(milliseconds))
    }

    mutating func fail(_ milliseconds: Int) {
      rest.failed(now: start + .milliseconds(milliseconds))
    }

    mutating func mayBegin(_ milliseconds: Int) -> Bool { begin(milliseconds) != nil }
  }

  @Test("after a failure, one caller at a time tries the server, until it succeeds")
  func pauses() throws {
    var server = Server()
    func mayBegin(_ milliseconds: Int) -> Bool { server.mayBegin(milliseconds) }
    #expect(mayBegin(0))
    server.fail(0)
    #expect(!mayBegin(4_999))
    #expect(mayBegin(5_000))
    #expect(!mayBegin(6_000), "another caller tries it")
    server.fail(8_000)
    #expect(!mayBegin(12_000))
    let last = server.begin(13_000)
    server.rest.succeeded(try #require(last))
    #expect(mayBegin(13_000))
    #expect(mayBegin(14_000))
  }

  @Test("work that began before a failure does not end the rest when it succeeds")
  func lateSuccess() throws {
    var server = Server()
    func mayBegin(_ milliseconds: Int) -> Bool { server.mayBegin(milliseconds) }
    let slow = server.begin(0)
    server.fail(1_000)
    server.rest.succeeded(try #require(slow))
    #expect(!mayBegin(2_000))
    #expect(mayBegin(6_000))
  }

  @Test("only an error of the server itself lets it rest")
  func effects() {
    func effect(_ kind: PostgresError.Kind, _ state: String? = nil) -> ServerRest.Effect {
      ServerRest.effect(of: PostgresError(kind, "", sqlState: state))
    }
    for kind in [PostgresError.Kind.connectionFailed, .connectionLost, .noAnswer, .readOnly] {
      #expect(effect(kind) == .rest)
    }
    for state in ["42P01", "42501", "53300"] { #expect(effect(.server, state) == .rest) }
    for state in ["40P01", "40001", "23505", "55P03"] { #expect(effect(.server, state) == .none) }
    // They are about another worker.
    for state in ["08006", "57P01"] { #expect(effect(.server, state) == .passOn) }
    var full = PostgresError(.server, "", sqlState: "53100")
    #expect(ServerRest.effect(of: full) == .rest)
    full.context = "while executing command on w2:5432"
    #expect(ServerRest.effect(of: full) == .passOn)
    #expect(effect(.busy) == .none, "the node has too much work for the server")
    #expect(effect(.poolClosed) == .none)
  }
}
