import Dispatch
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySimulation

/// Virtual time, and tasks on one thread in order.
@Suite(.hangLimit)
struct SchedulerTests {
  /// The events, in order.
  private final class Log: Sendable {
    private let entries = Mutex<[String]>([])
    var all: [String] { entries.withLock { $0 } }
    func add(_ entry: String) { entries.withLock { $0.append(entry) } }
  }

  @Test("timers fire by their time, and those of one time in the order of their creation")
  func timers() {
    let (scheduler, log) = (Scheduler(), Log())
    for (name, delay) in [("c", 30), ("a", 10), ("d", 30), ("b", 20), ("past", -5)] {
      scheduler.after(Int64(delay)) { log.add("\(name)@\(scheduler.now)") }
    }
    #expect(!scheduler.run(limit: 100) { false })
    #expect(log.all == ["past@0", "a@10", "b@20", "c@30", "d@30"])
    #expect(scheduler.now == 30)
  }

  @Test("many timers fire in order")
  func manyTimers() {
    var queue = TimerQueue()
    for number in 0..<500 { _ = queue.add(at: Int64(number * 7_919 % 101)) {} }
    var last = (at: Int64(-1), number: -1)
    var count = 0
    while let entry = queue.next() {
      #expect((entry.at, entry.number) > last)
      last = (entry.at, entry.number)
      count += 1
    }
    #expect(count == 500)
  }

  @Test("a cancelled timer does not fire, and a timer can set another one")
  func cancelled() {
    let (scheduler, log) = (Scheduler(), Log())
    let timer = scheduler.after(10) { log.add("cancelled") }
    scheduler.after(5) {
      scheduler.cancel(timer)
      scheduler.after(7) { log.add("later@\(scheduler.now)") }
    }
    _ = scheduler.run(limit: 100) { false }
    #expect(log.all == ["later@12"])
  }

  @Test("a run ends when it is done, or at its limit")
  func ends() {
    let scheduler = Scheduler()
    @Sendable func tick() { scheduler.after(10, tick) }
    tick()
    #expect(scheduler.run(limit: 1_000) { scheduler.now >= 50 })
    #expect(scheduler.now == 50)
    #expect(!scheduler.run(limit: 7) { false })
    #expect(scheduler.steps == 12)
  }

  @Test("tasks run one after another, in the order in which they become ready")
  func tasks() {
    let (scheduler, log) = (Scheduler(), Log())
    for name in ["a", "b"] {
      scheduler.task {
        log.add("\(name) starts")
        await Task.yield()
        log.add("\(name) goes on")
        try? await scheduler.sleep(.milliseconds(name == "a" ? 2 : 1))
        log.add("\(name) wakes at \(scheduler.now)")
      }
    }
    _ = scheduler.run(limit: 1_000) { false }
    #expect(
      log.all == [
        "a starts", "b starts", "a goes on", "b goes on", "b wakes at 1000", "a wakes at 2000",
      ])
  }

  @Test("a sleep ends at once when its task is cancelled, before or within it")
  func cancelledSleep() {
    let (scheduler, log) = (Scheduler(), Log())
    let task = scheduler.task {
      do {
        try await scheduler.sleep(.seconds(60))
      } catch {
        log.add("\(error is CancellationError) at \(scheduler.now)")
      }
      do {
        try await scheduler.sleep(.seconds(60))
      } catch {
        log.add("again at \(scheduler.now)")
      }
    }
    scheduler.after(1_000) { task.cancel() }
    _ = scheduler.run(limit: 1_000) { false }
    #expect(log.all == ["true at 1000", "again at 1000"])
    #expect(scheduler.now == 1_000)
  }

  @Test("while the scheduler awaits outside work, time does not advance and nothing else happens")
  func standStill() {
    let (scheduler, log) = (Scheduler(), Log())
    scheduler.task {
      scheduler.after(0) { log.add("timer at \(scheduler.now)") }
      scheduler.task { log.add("other task") }
      await scheduler.standStill {
        for _ in 0..<3 {
          await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume() }
          }
        }
        log.add("outside is done at \(scheduler.now)")
      }
    }
    _ = scheduler.run(limit: 1_000) { false }
    #expect(log.all == ["outside is done at 0", "other task", "timer at 0"])
  }

  @Test("a process's work takes virtual time in sequence, and ends when the process dies")
  func processor() {
    let (scheduler, log) = (Scheduler(), Log())
    let life = Life()
    let processor = Processor(scheduler, random: .init(1)) { life.isAlive }
    for number in 0..<20 {
      scheduler.task {
        do {
          log.add("\(try await processor.run { number })")
        } catch {
          log.add("died")
        }
      }
    }
    _ = scheduler.run(limit: 1_000) { log.all.count == 20 }
    #expect(log.all == (0..<20).map { "\($0)" })
    #expect(scheduler.now > 0 && scheduler.now <= 40_000)
    life.isAlive = false
    scheduler.task { if (try? await processor.run { 1 }) == nil { log.add("died") } }
    _ = scheduler.run(limit: 1_000) { false }
    #expect(log.all.last == "died")
  }
}

/// Whether a process lives.
// SAFETY: used on the test's thread only, on which everything runs.
private final class Life: @unchecked Sendable {
  var isAlive = true
}
