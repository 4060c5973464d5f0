import Dispatch
import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Checks of signatures under a flood of forged tokens.
@Suite("Checks of signatures", .hangLimit)
struct SignatureChecksTests {
  private let time = ServiceClockDouble()
  private let store = ServiceStoreDouble(spaces: ["list-7"])
  private let space = SpaceName.known("list-7")

  /// A verifier with the keys of a mint, and the verifier's gate.
  private func gate(_ mint: SignedTokenMint) async throws -> (SignedTokenVerifier, AccessGate) {
    let document = mint.secrets
    let verifier = SignedTokenVerifier(
      ClaimRules(issuer: SignedTokenMint.issuer, audiences: ["ferry", "other"]),
      keys: KeySource(takesSecrets: true) { Array(document.utf8) }, clock: time.clock,
      log: ServiceLog(level: .debug, sink: LogRecorder(), clock: time.clock))
    try await verifier.start()
    let gate = AccessGate(store: store, clock: time.clock, policy: .trusted, verifier: verifier)
    return (verifier, gate)
  }

  /// Returns a token with another signature for each number.
  private static func forged(_ token: String, _ number: Int) throws -> SignedText {
    let parts = token.split(separator: ".")
    let noise = Base64URL.encode((0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) })
    return try #require(SignedText("\(parts[0]).\(parts[1]).\(noise)\(parts[2].dropFirst(11))"))
  }

  private func admit(_ text: SignedText, _ gate: AccessGate) async throws -> ProblemCode? {
    var visitor = Visitor(credential: .signed(text))
    visitor.address = "10.0.0.1"
    return try await gate.admit(visitor, to: space, need: .reader).problemCode
  }

  @Test("a flood of forged tokens from an address refuses no good token of this address")
  func flood() async throws {
    let mint = try await SignedTokenMint.make()
    let (verifier, gate) = try await gate(mint)
    let sample = try #require(mint.good["ES256"])
    for number in 0..<1_400 {
      #expect(try await admit(Self.forged(sample, number), gate) == .unauthorized)
    }
    #expect(verifier.counts.forged == 1_400)
    for (name, token) in mint.good.sorted(by: { $0.key < $1.key }) {
      #expect(try await admit(try #require(SignedText(token)), gate) == nil, "\(name)")
    }
    let own = AccessRuleTests.token()
    try await store.addToken(own, AccessGrants(space, .reader))
    var visitor = Visitor(credential: .token(own))
    visitor.address = "10.0.0.1"
    let admitted = try await gate.admit(visitor, to: space, need: .reader)
    #expect(admitted.problemCode == nil, "a token of Ferry's that was never used")
  }

  @Test("tokens that do not fit in all but the signature are refused without a check")
  func unchecked() async throws {
    let mint = try await SignedTokenMint.make()
    let (verifier, gate) = try await gate(mint)
    for token in mint.refused.values {
      _ = try await admit(try #require(SignedText(token)), gate)
    }
    for text in ["a.b.c", "..", "e30.e30.e30"] {
      #expect(try await admit(try #require(SignedText(text)), gate) == .unauthorized)
    }
    #expect(try await admit(try #require(SignedText(mint.rotatedToken)), gate) == .unauthorized)
    #expect(verifier.counts.valid == 0 && verifier.counts.forged == 0)
    #expect(verifier.counts.unchecked >= mint.refused.count + 4)
  }

  /// A check that waits until the test lets it go, and the order of those behind it.
  private final class Course: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let started = Mutex(0)
    let order = Mutex([String]())

    func hold() -> SignatureKeys.Verdict {
      started.withLock { $0 += 1 }
      gate.wait()
      return .forged
    }

    func note(_ name: String) -> SignatureKeys.Verdict {
      order.withLock { $0.append(name) }
      return .valid
    }

    func hasStarted() async throws {
      try await eventually("the first check") { started.withLock { $0 } > 0 }
    }
    func release() { gate.signal() }
  }

  @Test(
    "a check behind four hundred others waits for one of each flow between",
    arguments: [
      (["key:2", "10.0.0.1", "ada"], 2), (["key:1", "10.0.0.2", "ada"], 3),
      (["key:1", "10.0.0.1", "ada"], 3), (["known", "10.0.0.1", "ada"], 2),
    ])
  func turns(path: [String], placeMax: Int) async throws {
    let (checks, course) = (SignatureChecks(threads: 1), Course())
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { course.release() }
      group.addTask { _ = await checks.run(["key:0", "", ""]) { course.hold() } }
      try await course.hasStarted()
      for _ in 0..<400 {
        group.addTask {
          _ = await checks.run(["key:1", "10.0.0.1", "eve"]) { course.note("eve") }
        }
      }
      // One check waits at the thread itself.
      try await eventually("399 checks") { checks.waitingCount >= 399 }
      group.addTask { _ = await checks.run(path) { course.note("ada") } }
      try await eventually("400 checks") { checks.waitingCount >= 400 }
    }
    let place = try #require(course.order.withLock { $0.firstIndex(of: "ada") })
    #expect(place <= placeMax)
  }

  @Test("the checks that wait are bounded, and those of the flow with most are given up")
  func bounded() async throws {
    let (checks, course) = (SignatureChecks(threads: 1), Course())
    let room = SignatureChecks.waitingMax
    try await withThrowingTaskGroup(of: SignatureKeys.Verdict?.self) { group in
      group.addTask { await checks.run(["key:0", "", ""]) { course.hold() } }
      try await course.hasStarted()
      for _ in 0...room {
        group.addTask { await checks.run(["key:1", "", "eve"]) { course.note("eve") } }
      }
      try await eventually("\(room) checks") { checks.waitingCount >= room }
      for number in 0..<5 {
        group.addTask {
          await checks.run(["key:1", "", "ada\(number)"]) { course.note("ada") }
        }
      }
      try await eventually("five checks to be given up") { checks.counts.givenUp >= 5 }
      course.release()
      var refused = 0
      for try await verdict in group where verdict == nil { refused += 1 }
      #expect(refused == 5)
    }
    #expect(course.order.withLock { $0.filter { $0 == "ada" }.count } == 5)
  }
}

extension SignedTokenVerifier {
  /// Returns the identity behind a token of a new sender, or why it is refused.
  func verify(_ text: SignedText) async -> Result<Identity, Problem> {
    switch await verify(text, at: "10.0.0.1") {
    case .valid(let identity): .success(identity)
    case .forged(let problem), .refused(let problem): .failure(problem)
    }
  }
}
