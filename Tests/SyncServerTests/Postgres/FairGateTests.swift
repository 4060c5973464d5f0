import FerryPlatform
import FerryTestSupport
import Synchronization
import Testing

/// Callers waiting at a gate, each as a task.
@Suite("A fair gate", .hangLimit)
struct FairGateTests {
  private let order = Recorder()

  /// Keeps the order in which callers went on.
  private final class Recorder: Sendable {
    let names = Mutex([String]())
    func add(_ name: String) { names.withLock { $0.append(name) } }
  }

  private func enter(_ gate: FairGate, _ user: String) -> Task<Bool, Never> {
    Task { [order] in
      guard await gate.enter([user]) else { return false }
      order.add(user)
      gate.leave([user])
      return true
    }
  }

  private func wait(for count: Int, at gate: FairGate) async throws {
    try await eventually("\(count) callers") { gate.waitingCount >= count }
  }

  @Test("a user that comes behind four hundred callers of another goes on second")
  func turns() async throws {
    let gate = FairGate(FlowLimits(all: 1))
    #expect(await gate.enter([""]))
    let many = (0..<400).map { _ in enter(gate, "a") }
    try await wait(for: 400, at: gate)
    let single = enter(gate, "b")
    try await wait(for: 401, at: gate)
    gate.leave([""])
    for task in many + [single] { #expect(await task.value) }
    #expect(order.names.withLock { $0.firstIndex(of: "b") } == 1)
  }

  @Test("one user takes no more than its part, and the server's own work takes all")
  func limits() async throws {
    let gate = FairGate(FlowLimits(all: 3, user: 2))
    for _ in 0..<2 { #expect(await gate.enter(["a"])) }
    let third = enter(gate, "a")
    try await wait(for: 1, at: gate)
    #expect(await enter(gate, "b").value, "the last place is another's")
    gate.leave(["a"])
    #expect(await third.value)
    gate.leave(["a"])
    for _ in 0..<3 { #expect(await gate.enter([""])) }
    for _ in 0..<3 { gate.leave([""]) }
    #expect(gate.waitingCount == 0)
  }

  @Test("if too many wait, callers of the user with most are refused")
  func full() async throws {
    let gate = FairGate(FlowLimits(all: 1), waitingMax: 10)
    #expect(await gate.enter([""]))
    let many = (0..<10).map { _ in enter(gate, "a") }
    try await wait(for: 10, at: gate)
    let others = (0..<3).map { enter(gate, "b\($0)") }
    // Each of the others takes the place of one caller.
    try await eventually("three refused callers") { gate.waitingCount(of: "a") <= 7 }
    gate.leave([""])
    for task in others { #expect(await task.value) }
    var passed = 0
    for task in many where await task.value { passed += 1 }
    #expect(passed == 7)
  }
}
