import FerryPlatform
import FerryTestSupport
import Synchronization
import Testing

/// The turns of users at a pool of threads, as a table.
@Suite("Turns of flows", .hangLimit)
struct FlowTurnsTests {
  /// Returns the order of work, each named by user, space and number: `a.x1`; `own` is the server's.
  static func order(_ works: [String]) -> [String] {
    var turns = FlowTurns<String>()
    for work in works { turns.add(work, of: flow(work)) }
    #expect(turns.count == works.count)
    var order: [String] = []
    while let work = turns.removeNext() { order.append(work) }
    #expect(turns.count == 0)
    return order
  }

  static func flow(_ work: String) -> WorkFlow {
    let parts = work.split(separator: ".").map(String.init)
    return parts.count < 2 ? .own : WorkFlow(user: parts[0], part: String(parts[1].prefix(1)))
  }

  @Test(
    "the server's own work goes first, then users take turns, then the spaces of a user",
    arguments: [
      ([], []),
      (["a.x1", "a.x2", "b.x1"], ["a.x1", "a.x2", "b.x1"]),
      (["a.x1", "a.x2", "a.x3", "b.x1"], ["a.x1", "a.x2", "b.x1", "a.x3"]),
      (["a.x1", "a.x2", "a.x3", "a.y1"], ["a.x1", "a.x2", "a.y1", "a.x3"]),
      (["a.x1", "b.x1", "own1", "own2"], ["own1", "own2", "a.x1", "b.x1"]),
      (["own1", "a.x1", "b.x1", "own2"], ["own1", "own2", "a.x1", "b.x1"]),
    ])
  func turns(_ works: [String], _ order: [String]) {
    #expect(Self.order(works) == order)
  }

  @Test("one piece of work behind four hundred of another user is third at most")
  func behindMany() {
    let order = Self.order((0..<400).map { "a.x\($0)" } + ["b.x0"])
    #expect(order.firstIndex(of: "b.x0") == 2)
    #expect(order.count == 401)
  }

  private final class Order: Sendable {
    let users = Mutex([String]())
  }

  @Test("a pool runs the jobs of its users in turns")
  func pool() async throws {
    let pool = ThreadPoolExecutor(name: "turns", threads: 1)
    let block = ThreadBlock()
    let order = Order()
    let blocking = Task(executorPreference: pool) { block.wait() }
    try await eventually("the thread is blocked") { block.isWaiting }
    let tasks = (Array(repeating: "a", count: 20) + ["b"]).map { user in
      Task(executorPreference: pool.executor(of: WorkFlow(user: user))) {
        order.users.withLock { $0.append(user) }
      }
    }
    try await eventually("all jobs wait") { pool.waitingCount == tasks.count }
    block.end()
    await blocking.value
    for task in tasks { await task.value }
    let all = order.users.withLock { $0 }
    #expect(all.firstIndex(of: "b") == 2)
    #expect(all.count == tasks.count)
  }
}
