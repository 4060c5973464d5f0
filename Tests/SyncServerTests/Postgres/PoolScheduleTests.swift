import FerryPlatform
import FerryTestSupport
import Testing

@testable import FerryPostgres

/// Which work gets the next connection, as a table.
@Suite("A pool's schedule", .hangLimit)
struct PoolScheduleTests {
  typealias Schedule = PoolSchedule<String>

  static func schedule(
    _ connections: Int, waitingMax: Int = 100, patience: Duration? = .seconds(10)
  ) -> Schedule {
    var shares = PoolShares.standard(connections: connections)
    shares.waitingMax = waitingMax
    shares.patience = patience
    return Schedule(connections: connections, shares: shares)
  }

  /// Adds so many pieces of work to a lane, named by it and their number.
  static func fill(_ schedule: inout Schedule, _ lane: PoolLane, _ count: Int) {
    for number in 0..<count {
      #expect(schedule.add("\(lane)\(number)", lane: lane, now: .zero) == nil)
    }
  }

  static func running(_ schedule: inout Schedule) -> [String] {
    var jobs: [String] = []
    while let (job, _, _) = schedule.dequeue() { jobs.append(job) }
    return jobs
  }

  @Test("pulls never take the connections that are reserved for pushes and authentication")
  func pullsLeaveRoom() {
    var schedule = Self.schedule(8)
    Self.fill(&schedule, .pull, 40)
    #expect(Self.running(&schedule) == ["pull0", "pull1", "pull2", "pull3"])
    Self.fill(&schedule, .push, 2)
    Self.fill(&schedule, .authentication, 1)
    #expect(Self.running(&schedule) == ["push0", "push1", "authentication0"])
  }

  @Test("pushes leave pulls their share, and upkeep has no share")
  func everyLaneMoves() {
    var schedule = Self.schedule(8)
    Self.fill(&schedule, .upkeep, 10)
    #expect(Self.running(&schedule).count == 2)
    Self.fill(&schedule, .push, 10)
    #expect(Self.running(&schedule).count == 3)
    Self.fill(&schedule, .pull, 10)
    #expect(Self.running(&schedule).count == 2)
    Self.fill(&schedule, .authentication, 10)
    #expect(Self.running(&schedule).count == 1)
    schedule.finish(.upkeep, .own)
    #expect(Self.running(&schedule).count == 1, "what is free belongs to all")
  }

  @Test("work runs in the order of its arrival, within a lane and among lanes")
  func order() {
    var schedule = Self.schedule(8)
    for job in ["a", "b"] { #expect(schedule.add(job, lane: .push, now: .zero) == nil) }
    #expect(schedule.add("c", lane: .pull, now: .zero) == nil)
    #expect(schedule.add("d", lane: .push, now: .zero) == nil)
    #expect(Self.running(&schedule) == ["a", "b", "c", "d"])
  }

  @Test("any number of connections serves every lane", arguments: 1...20)
  func few(_ connections: Int) {
    for lane in PoolLane.allCases {
      var schedule = Self.schedule(connections)
      Self.fill(&schedule, lane, 50)
      let count = Self.running(&schedule).count
      #expect(count >= 1 && count <= connections, "\(lane)")
      for other in PoolLane.allCases where other != lane && other != .upkeep && connections >= 4 {
        Self.fill(&schedule, other, 1)
        #expect(Self.running(&schedule).count == 1, "\(other) while \(lane) has all it may")
      }
    }
  }

  @Test("waiting work is bounded in number and in time, separately for each lane")
  func bounds() {
    var schedule = Self.schedule(8, waitingMax: 3)
    Self.fill(&schedule, .pull, 3)
    #expect(schedule.add("more", lane: .pull, now: .zero) == "more")
    #expect(schedule.add("push", lane: .push, now: .seconds(4)) == nil)
    #expect(schedule.nextDeadline == .seconds(10))
    #expect(schedule.expire(now: .seconds(9)).isEmpty)
    #expect(schedule.expire(now: .seconds(10)) == ["pull0", "pull1", "pull2"])
    #expect(schedule.nextDeadline == .seconds(14))
    #expect(schedule.expire(now: .seconds(20)) == ["push"])
    #expect(schedule.isEmpty && schedule.nextDeadline == nil)
  }

  @Test("a pool without shares has one queue, and waits without a deadline")
  func none() {
    var schedule = Schedule(connections: 2, shares: .none)
    Self.fill(&schedule, .pull, 2_000)
    #expect(schedule.nextDeadline == nil)
    #expect(Self.running(&schedule).count == 2)
    schedule.finish(.pull, .own)
    #expect(Self.running(&schedule) == ["pull2"])
  }

  // MARK: Users

  static func fill(
    _ schedule: inout Schedule, _ lane: PoolLane, _ user: String, _ count: Int
  ) -> [String] {
    (0..<count).compactMap { number in
      schedule.add("\(user)\(number)", lane: lane, flow: WorkFlow(user: user), now: .zero)
    }
  }

  @Test("a pull behind four hundred pulls of another user begins at once")
  func oneBehindMany() {
    var schedule = Self.schedule(8, waitingMax: 1_024)
    #expect(Self.fill(&schedule, .pull, "a", 400) == [])
    #expect(Self.running(&schedule) == ["a0", "a1", "a2"], "one connection is left to others")
    #expect(Self.fill(&schedule, .pull, "b", 2) == [])
    #expect(Self.running(&schedule) == ["b0"])
    schedule.finish(.pull, WorkFlow(user: "a"))
    #expect(Self.running(&schedule) == ["a3"], "the other user's turn")
    schedule.finish(.pull, WorkFlow(user: "a"))
    #expect(Self.running(&schedule) == ["b1"])
  }

  @Test("on few connections, a user waits for one piece of another's work", arguments: 1...3)
  func fewConnections(_ connections: Int) {
    var schedule = Self.schedule(connections, waitingMax: 1_024)
    #expect(Self.fill(&schedule, .pull, "a", 400) == [])
    let running = Self.running(&schedule)
    #expect(Self.fill(&schedule, .pull, "b", 1) == [])
    var others = 0
    while Self.running(&schedule) != ["b0"] {
      schedule.finish(.pull, WorkFlow(user: "a"))
      others += 1
      #expect(others <= 2 && !running.isEmpty)
      if others > 2 { break }
    }
  }

  @Test("a full queue has room for a user with little in it")
  func full() {
    var schedule = Self.schedule(8, waitingMax: 10)
    #expect(Self.fill(&schedule, .pull, "a", 12) == ["a10", "a11"])
    #expect(Self.fill(&schedule, .pull, "b", 2) == ["a9", "a8"])
    #expect(Self.fill(&schedule, .push, "a", 1) == [], "the lanes are separate")
  }

  @Test("the spaces of one user take turns")
  func spaces() {
    var schedule = Self.schedule(1)
    for (job, part) in [("x0", "x"), ("x1", "x"), ("x2", "x"), ("y0", "y")] {
      let flow = WorkFlow(user: "a", part: part)
      #expect(schedule.add(job, lane: .push, flow: flow, now: .zero) == nil)
    }
    var order: [String] = []
    while let (job, lane, flow) = schedule.dequeue() {
      order.append(job)
      schedule.finish(lane, flow)
    }
    #expect(order == ["x0", "y0", "x1", "x2"])
  }
}
