import Ferry
import FerryTestSupport
import Foundation
import Testing

/// SIGKILL of the server and of the client at each step of a sync. Nothing is lost, nothing is done
/// twice, and the devices end with the same data.
@Suite(.serialized, .hangLimit)
struct KillTests {
  enum Victim: String, CaseIterable { case client, server }

  /// The progress of a push.
  enum Step: String, CaseIterable {
    /// Recorded by the user's transaction; no request has been sent.
    case recorded
    /// The server has half of the request.
    case halfSent
    /// The server has the request.
    case sent
    /// The server has committed, and the response is on the way.
    case committed
    /// The response has reached the client's machine; the client has not read it.
    case answered
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var victim: Victim
    var step: Step
    var store = StoreKind.embedded
    var testDescription: String { "\(victim) killed when \(step), \(store)" }

    static let embedded = Step.allCases.flatMap { step in
      Victim.allCases.map { Case(victim: $0, step: step) }
    }
    static let postgres = [Step.halfSent, .sent, .committed].flatMap { step in
      Victim.allCases.map { Case(victim: $0, step: step, store: .postgres) }
    }
  }

  @Test(
    "a kill during a push loses and duplicates nothing", arguments: Case.embedded + Case.postgres)
  func push(_ it: Case) async throws {
    let pair = try await Pair.make(it.store)
    try await pair.one.write(Sample.notes(60, "old"))
    try await pair.one.exchange()
    try await pair.one.write(Sample.notes(60, "new"))
    try await pair.one.write("DELETE FROM notes WHERE id = 'old-00001'")
    let trap = set(it.step, on: pair.proxy)
    let client = try pair.one.start("sync")
    try await trap.sprung()
    if it.step == .answered { try await deliver(trap, to: client, pair.proxy) }
    switch it.victim {
    case .client:
      client.send(SIGKILL)
      pair.proxy.removeTraps()
      // The packet is reported and not held: on a busy machine it may have been faster.
      let status = try await client.exitStatus()
      #expect(status == .killed(signal: SIGKILL) || it.step == .sent && status == .exited(0))
    case .server:
      try await pair.server.kill()
      trap.cut()
      pair.proxy.removeTraps()
      try await pair.server.start()
      client.send(SIGCONT)
      _ = try await client.exitStatus()
    }
    try await expectSettled([pair.one, pair.two], pair.server, operations: 121)
    #expect(try await pair.two.count() == 119)
  }

  private func set(_ step: Step, on proxy: TCPProxy) -> ProxyTrap {
    switch step {
    case .recorded: proxy.trap(.request, of: "/changes", .hold)
    case .halfSent: proxy.trap(.request, of: "POST ", after: 1_500, .hold)
    case .sent: proxy.trap(.request, of: "POST ", after: 1_500, .tell)
    case .committed, .answered: proxy.trap(.answer, of: "POST ", .hold)
    }
  }

  /// Puts the response into the socket of a client that cannot read it any more.
  private func deliver(
    _ trap: ProxyTrap, to client: ChildProcess, _ proxy: TCPProxy
  ) async throws {
    client.send(SIGSTOP)
    // The signal takes effect with a delay: "T" is stopped (proc(5)).
    try await eventually("the client to stand still") {
      try String(contentsOfFile: "/proc/\(client.processID)/status", encoding: .utf8)
        .contains("State:\tT")
    }
    let before = proxy.byteCount(.answer)
    trap.release()
    try await eventually("the answer to pass") { proxy.byteCount(.answer) > before }
  }

  @Test(
    "a kill while pages are staged shows none of them, and the next pull completes",
    arguments: Victim.allCases)
  func pull(_ victim: Victim) async throws {
    let pair = try await Pair.make()
    try await pair.two.write(Sample.notes(6_000, "note"))
    try await pair.two.exchange()
    let trap = pair.proxy.trap(.answer, of: "/changes", skipping: 1, .hold)
    let client = try pair.one.start("pull", "--json")
    try await trap.sprung()
    try await eventually("a staged page", from: client) {
      try await pair.one.status().toApply == 5_000
    }
    #expect(try await pair.one.count() == 0)
    switch victim {
    case .client:
      client.send(SIGKILL)
      pair.proxy.removeTraps()
      _ = try await client.exitStatus()
      #expect(try await pair.one.status().toApply == 5_000)
      #expect(try await pair.one.count() == 0)
    case .server:
      try await pair.server.kill()
      trap.cut()
      pair.proxy.removeTraps()
      try await pair.server.start()
      _ = try await client.exitStatus()
    }
    let before = pair.proxy.byteCount(.answer)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 6_000)
    #expect(try await pair.one.count() == 6_000)
    if victim == .client {
      // Staged pages are not requested again.
      #expect(pair.proxy.byteCount(.answer) - before < before)
    }
  }

  @Test(
    "kills at arbitrary bytes lose and duplicate nothing",
    arguments: [(7, .embedded), (2_024, .embedded), (31, .postgres)] as [(UInt64, StoreKind)])
  func anywhere(_ seed: UInt64, _ kind: StoreKind) async throws {
    var random = SeededGenerator(seed: seed)
    let pair = try await Pair.make(kind)
    try await pair.two.ferry("init", "--server", pair.proxy.url, "--space", Device.space)
    var total = 0
    for round in 1...8 {
      for (index, device) in [pair.one, pair.two].enumerated() {
        let count = Int.random(in: 1...40, using: &random)
        try await device.write(Sample.notes(count, "r\(round)-\(index)"))
        total += count
      }
      let runner = Bool.random(using: &random) ? pair.one : pair.two
      let direction = Bool.random(using: &random) ? TCPProxy.Direction.request : .answer
      let bytes = Int.random(in: 0..<9_000, using: &random)
      let victim = Bool.random(using: &random) ? Victim.client : .server
      try await kill(victim, of: runner, pair, direction, after: bytes)
    }
    try await expectSettled([pair.one, pair.two], pair.server, operations: Int64(total))
    #expect(try await pair.one.count() == Int64(total))
  }

  private func kill(
    _ victim: Victim, of runner: Device, _ pair: Pair, _ direction: TCPProxy.Direction,
    after bytes: Int
  ) async throws {
    let trap = pair.proxy.trap(direction, after: bytes, .hold)
    let client = try runner.start("sync")
    try await eventually("the trap or the end") { trap.hasSprung || client.endedWith != nil }
    switch victim {
    case .client:
      client.send(SIGKILL)
      trap.release()
    case .server:
      try await pair.server.kill()
      trap.cut()
      try await pair.server.start()
    }
    pair.proxy.removeTraps()
    _ = try await client.exitStatus()
  }
}
