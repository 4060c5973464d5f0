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
      #expect(schedule.add("\(lane)\(number)", lane: lane, now: .zero) == true)
    }
  }

  static func running(_ schedule: inout Schedule) -> [String] {
    var jobs: [String] = []
    while let (job, _) = schedule.take() { jobs.append(job) }
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
    schedule.finish(.upkeep)
    #expect(Self.running(&schedule).count == 1, "what is free belongs to all")
  }

  @Test("work runs in the order of its arrival, within a lane and among lanes")
  func order() {
    var schedule = Self.schedule(8)
    for job in ["a", "b"] { #expect(schedule.add(job, lane: .push, now: .zero) == true) }
    #expect(schedule.add("c", lane: .pull, now: .zero) == true)
    #expect(schedule.add("d", lane: .push, now: .zero) == true)
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
    #expect(schedule.add("more", lane: .pull, now: .zero) == false)
    #expect(schedule.add("push", lane: .push, now: .seconds(4)) == true)
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
    schedule.finish(.pull)
    #expect(Self.running(&schedule) == ["pull2"])
  }
}
