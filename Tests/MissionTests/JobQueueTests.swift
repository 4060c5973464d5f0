import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

/// Jobs with letters as names.
enum Letters: JobKind {
  struct Reason: Error, Equatable, ExpressibleByStringLiteral {
    var text: String
    init(stringLiteral text: String) { self.text = text }
  }

  static func reason(_ obstacle: JobObstacle<String>, _ cause: Reason?) -> Reason? {
    switch obstacle {
    case .waits(let id): Reason(stringLiteral: "waits for \(id)")
    case .lacks(let id): Reason(stringLiteral: "lacks \(id)")
    case .failed(let id, let state):
      Reason(stringLiteral: "\(id) \(state)" + (cause.map { ": \($0.text)" } ?? ""))
    case .cycle: "cycle"
    }
  }
}

extension JobQueue.Effect where Kind == Letters {
  /// `+a` starts, `-a` stops, `a ready: reason` is a state.
  fileprivate var text: String {
    switch self {
    case .start(let id): "+\(id)"
    case .stop(let id): "-\(id)"
    case .changed(let id, let state, let reason):
      "\(id) \(state)" + (reason.map { ": \($0.text)" } ?? "")
    }
  }
}

/// Events with the effects of each.
struct JobRow: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var limits = JobLimits(atOnce: 1)
  var isHeld = false
  var steps: [(event: JobQueue<Letters>.Event, effects: String)]

  init(
    _ name: String, limits: JobLimits = JobLimits(atOnce: 1), isHeld: Bool = false,
    _ steps: (JobQueue<Letters>.Event, String)...
  ) {
    testDescription = name
    (self.limits, self.isHeld) = (limits, isHeld)
    self.steps = steps.map { (event: $0.0, effects: $0.1) }
  }
}

private func job(
  _ id: String, _ number: Int64, priority: Int64 = 0, after: [String] = [], group: Int64? = nil,
  state: JobState = .ready
) -> JobQueue<Letters>.Job {
  JobQueue<Letters>.Job(
    id: id, priority: priority, number: number, after: after, group: group, state: state)
}

@Suite("The queue of jobs", .hangLimit)
struct JobQueueTests {
  private static let order = [
    JobRow(
      "jobs run one after another, by priority and then in the order of requests",
      (
        .requested([job("a", 1), job("b", 2), job("c", 3, priority: 1)]),
        "a ready, b ready, c ready, c downloading, +c"
      ),
      (.ended("c", .done), "c done, a downloading, +a"),
      (.ended("a", .done), "a done, b downloading, +b"),
      (.ended("b", .done), "b done")),
    JobRow(
      "as many run as the limit allows, and it may change", limits: JobLimits(atOnce: 2),
      (.added([job("a", 1), job("b", 2), job("c", 3)]), "a downloading, +a, b downloading, +b"),
      (.limit(3), "c downloading, +c")),
    JobRow(
      "a new priority changes the order of waiting jobs",
      (.added([job("a", 1), job("b", 2), job("c", 3)]), "a downloading, +a"),
      (.prioritise("c", 5), ""),
      (.ended("a", .done), "a done, c downloading, +c")),
    JobRow(
      "nothing starts before the queue begins, and changes until then count", isHeld: true,
      (.added([job("a", 1), job("b", 2, after: ["a"]), job("c", 3)]), "b ready: waits for a"),
      (.cancel("a", nil), "a cancelled, b failed: a cancelled"),
      (.begin, "c downloading, +c")),
    JobRow(
      "after a restart paused jobs stay paused, and running ones start again",
      (
        .requested([job("a", 1, state: .paused), job("b", 2, state: .downloading)]),
        "a paused, b ready, b downloading, +b"
      )),
    JobRow(
      "a new request restarts an ended job, and does not change a running one",
      (.requested([job("a", 1)]), "a ready, a downloading, +a"),
      (.requested([job("a", 1)]), ""),
      (.ended("a", .failed("403")), "a failed: 403"),
      (.requested([job("a", 2)]), "a ready, a downloading, +a"),
      (.ended("a", .done), "a done"),
      (.requested([job("a", 3)]), "a ready, a downloading, +a")),
  ]

  private static let predecessors = [
    JobRow(
      "a job waits for its predecessors, even if its priority is higher",
      (
        .requested([job("a", 1, priority: 9, after: ["b"]), job("b", 2)]),
        "a ready, b ready, a ready: waits for b, b downloading, +b"
      ),
      (.ended("b", .done), "b done, a downloading, +a")),
    JobRow(
      "a job that was complete before delays no other",
      (.alreadyDone("b"), ""),
      (.requested([job("a", 1, after: ["b"])]), "a ready, a downloading, +a")),
    JobRow(
      "a failure fails all jobs that depend on it",
      (
        .requested([job("a", 1, after: ["b"]), job("b", 2, after: ["c"]), job("c", 3)]),
        "a ready, b ready, c ready, a ready: waits for b, b ready: waits for c, "
          + "c downloading, +c"
      ),
      (
        .ended("c", .failed("bad")),
        "c failed: bad, b failed: c failed: bad, a failed: b failed: c failed: bad"
      )),
    JobRow(
      "a paused job delays its followers, and a cancelled one fails them",
      (
        .requested([job("a", 1, after: ["b"]), job("b", 2)]),
        "a ready, b ready, a ready: waits for b, b downloading, +b"
      ),
      (.pause("b"), "b paused, -b"),
      (.ended("b", .stopped), ""),
      (.cancel("b", "no"), "b cancelled: no, a failed: b cancelled: no")),
    JobRow(
      "jobs in a cycle fail, and so do those that wait for an unrequested one",
      (
        .requested([job("a", 1, after: ["b"]), job("b", 2, after: ["a"])]),
        "a ready, b ready, a failed: cycle, b failed: a failed: cycle"
      ),
      (.requested([job("c", 3, after: ["d"])]), "c ready, c failed: lacks d")),
    JobRow(
      "a later request may close a cycle",
      (.requested([job("b", 1, state: .paused)]), "b paused"),
      (.requested([job("a", 2, after: ["b"])]), "a ready, a ready: waits for b"),
      (
        .requested([job("b", 1, after: ["a"])]),
        "b ready, b failed: cycle, a failed: b failed: cycle"
      )),
    JobRow(
      "a removed job is forgotten, and a new follower of it fails",
      (.alreadyDone("b"), ""), (.removed("b"), ""),
      (.requested([job("a", 1, after: ["b"])]), "a ready, a failed: lacks b")),
    JobRow(
      "a finished job counts as done after its removal, an unfinished one does not",
      (
        .added([job("a", 1), job("b", 2, after: ["a", "c"]), job("c", 3)]),
        "b ready: waits for a, a downloading, +a"
      ),
      (.ended("a", .done), "a done, b ready: waits for c, c downloading, +c"),
      (.finished("a"), ""),
      (.ended("c", .done), "c done, b downloading, +b"),
      (.added([job("d", 4), job("e", 5, after: ["d"])]), "e ready: waits for d"),
      (.cancel("d", nil), "d cancelled, e failed: d cancelled"),
      (.removed("d"), ""),
      (.resume("e"), "e ready, e failed: lacks d")),
    JobRow(
      "a job that waited for another one no longer reports that when it waits for its turn",
      (
        .added([job("a", 1), job("b", 2), job("c", 3, after: ["a"])]),
        "c ready: waits for a, a downloading, +a"
      ),
      (.ended("a", .done), "a done, b downloading, +b, c ready"),
      (.ended("b", .done), "b done, c downloading, +c")),
  ]

  private static let interruptions = [
    JobRow(
      "a paused job leaves its place when it has stopped, and returns on resume",
      (.added([job("a", 1), job("b", 2)]), "a downloading, +a"),
      (.pause("a"), "a paused, -a"),
      (.ended("a", .stopped), "b downloading, +b"),
      (.resume("a"), "a ready"),
      (.ended("b", .done), "b done, a downloading, +a")),
    JobRow(
      "a job resumed before it has stopped starts again afterwards",
      (.added([job("a", 1)]), "a downloading, +a"),
      (.pause("a"), "a paused, -a"), (.resume("a"), "a ready"),
      (.ended("a", .stopped), "a downloading, +a")),
    JobRow(
      "a job that was complete when it was stopped is done",
      (.added([job("a", 1)]), "a downloading, +a"),
      (.cancel("a", nil), "a cancelled, -a"), (.ended("a", .done), "a done")),
    JobRow(
      "a cancellation outlasts a late failure and a resume",
      (.added([job("a", 1)]), "a downloading, +a"),
      (.cancel("a", nil), "a cancelled, -a"), (.ended("a", .failed("late")), ""),
      (.resume("a"), "")),
    JobRow(
      "a full disk pauses a job with the reason, and the next one runs",
      (.added([job("a", 1), job("b", 2)]), "a downloading, +a"),
      (.ended("a", .paused("full")), "a paused: full, b downloading, +b")),
    JobRow(
      "a stalled job reports it and delays no other",
      (.added([job("a", 1), job("b", 2)]), "a downloading, +a"),
      (.stalled("a", "no network"), "a downloading: no network, b downloading, +b"),
      (.goesOn("a"), "a downloading")),
    JobRow(
      "a failed attempt gives its turn to another until its pause is over",
      (.added([job("a", 1), job("b", 2)]), "a downloading, +a"),
      (.ended("a", .rests("offline")), "a ready: offline, b downloading, +b"),
      (.rested("a"), ""),
      (.ended("b", .done), "b done, a downloading, +a")),
    JobRow(
      "a failed job is tried again on request",
      (.added([job("a", 1)]), "a downloading, +a"),
      (.ended("a", .failed("404")), "a failed: 404"),
      (.resume("a"), "a ready, a downloading, +a")),
  ]

  private static let groups = [
    JobRow(
      "one group runs, so many of its jobs at once, and then the next",
      limits: JobLimits(atOnce: 4, groupsAtOnce: 1, atOnceInGroup: 2),
      (
        .added([
          job("a", 1, group: 1), job("b", 2, group: 1), job("c", 3, group: 1),
          job("x", 4, group: 2), job("y", 5, group: 2),
        ]), "a downloading, +a, b downloading, +b"
      ),
      (.ended("a", .done), "a done, c downloading, +c"),
      (.ended("b", .done), "b done"),
      (.ended("c", .paused(nil)), "c paused, x downloading, +x, y downloading, +y"),
      (.resume("c"), "c ready"),
      (.ended("x", .done), "x done"),
      (.ended("y", .done), "y done, c downloading, +c")),
    JobRow(
      "a group without a connection gives its turn away, and gets it back by its priority",
      limits: JobLimits(atOnce: 3, groupsAtOnce: 1, atOnceInGroup: 1),
      (
        .added([job("a", 1, group: 1), job("b", 2, group: 2), job("c", 3, priority: 5, group: 3)]),
        "c downloading, +c"
      ),
      (.ended("c", .rests("offline")), "c ready: offline, a downloading, +a"),
      (.rested("c"), ""),
      (.ended("a", .done), "a done, c downloading, +c")),
    JobRow(
      "a cancelled job does not stop the next group",
      limits: JobLimits(atOnce: 2, groupsAtOnce: 1),
      (
        .added([job("a", 1, group: 1), job("b", 2, group: 2), job("c", 3, group: 3)]),
        "a downloading, +a"
      ),
      (.cancel("b", nil), "b cancelled"),
      (.ended("a", .done), "a done, c downloading, +c")),
    JobRow(
      "equal content is fetched once, as soon as one of its jobs can start",
      limits: JobLimits(atOnce: 4, atOnceInGroup: 1),
      (
        .added([
          job("a", 1, after: ["b"], group: 1), job("b", 2, after: ["c"], group: 2),
          job("c", 3, group: 1),
        ]), "a ready: waits for b, b ready: waits for c, c downloading, +c"
      ),
      (.finished("a"), ""),
      (.ended("c", .done), "c done, b downloading, +b"),
      (.ended("b", .done), "b done")),
    JobRow(
      "after a failure the next job of equal content has its turn",
      limits: JobLimits(atOnce: 4, atOnceInGroup: 1),
      (.added([job("a", 1, group: 1), job("b", 2, group: 1)]), "a downloading, +a"),
      (.ended("a", .failed("x")), "a failed: x, b downloading, +b")),
  ]

  @Test(
    "each event has the effects of its row",
    arguments: order + predecessors + interruptions + groups)
  func rows(row: JobRow) {
    var queue = JobQueue<Letters>(limits: row.limits, isHeld: row.isHeld)
    for (number, step) in row.steps.enumerated() {
      let found = queue.handle(step.event).map(\.text).joined(separator: ", ")
      #expect(found == step.effects, "step \(number) of “\(row.testDescription)”")
    }
  }

  @Test("unknown predecessors, cycles and names in use are refused")
  func faults() {
    var queue = JobQueue<Letters>(limits: JobLimits(atOnce: 1))
    _ = queue.handle(.added([job("a", 1)]))
    func fault(_ jobs: JobQueue<Letters>.Job...) -> String? {
      queue.fault(adding: jobs).map { "\($0.0) \($0.1)" }
    }
    #expect(fault(job("b", 2, after: ["a"])) == nil)
    #expect(fault(job("b", 2, after: ["x"])) == "b unknown(\"x\")")
    #expect(fault(job("b", 2, after: ["b"])) == "b cycle")
    let circle = [job("b", 2, after: ["c"]), job("c", 3, after: ["d"])]
    #expect(fault(circle[0], circle[1], job("d", 4, after: ["b"])) == "b cycle")
    #expect(fault(circle[0], circle[1], job("d", 4, after: ["a"])) == nil)
    #expect(fault(job("a", 2)) == "a duplicate")
    #expect(fault(job("b", 2), job("b", 3)) == "b duplicate")
    #expect(queue.followers(of: "a").isEmpty)
    _ = queue.handle(.added([job("e", 2, after: ["a", "f"]), job("f", 3)]))
    #expect(queue.followers(of: "a") == ["e": ["f"]])
  }

  @Test("ten thousand jobs take their turns in order, each event at the cost of a few")
  func many() {
    var queue = JobQueue<Letters>(limits: JobLimits(atOnce: 2))
    let count: Int64 = 10_000
    let added = (1...count).map { number in
      let after = number % 10 == 0 ? ["\(number - 1)"] : []
      return job("\(number)", number, priority: number % 3, after: after)
    }
    var running = started(queue.handle(.added(added)))
    var order: [String] = []
    while let id = running.first {
      order.append(id)
      running.removeFirst()
      running += started(queue.handle(.ended(id, .done)))
    }
    #expect(order.count == Int(count) && queue.isDone && queue.isIdle)
    let places = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
    for job in added {
      for first in job.after { #expect(places[first] ?? .max < places[job.id] ?? 0) }
    }
    #expect(order.prefix(2) == ["2", "5"])
  }

  private func started(_ effects: [JobQueue<Letters>.Effect]) -> [String] {
    effects.compactMap { if case .start(let id) = $0 { id } else { nil } }
  }

  @Test("the items of a manifest start in its order, and equal content once")
  func items() {
    func item(_ path: String, _ content: String? = nil, after: [String] = []) -> MissionItem {
      let bytes = Array((content ?? path).utf8)
      return MissionItem(path: path, size: Int64(bytes.count), hash: hash(bytes), after: after)
    }
    var queue = JobQueue<ItemJobs>(limit: 4)
    func starts(_ effects: [JobQueue<ItemJobs>.Effect]) -> [Int] {
      effects.compactMap { if case .start(let place) = $0 { place } else { nil } }
    }
    let items = (0..<6).map { item("i\($0)", $0 == 5 ? "i0" : nil) }
    #expect(starts(queue.add(items)) == [0, 1, 2, 3])
    #expect(starts(queue.finish(0, others: [5])) == [4])
    for place in 1...4 { #expect(starts(queue.finish(place, others: [])).isEmpty) }
    #expect(queue.isDone)
    queue = JobQueue<ItemJobs>(limit: 4)
    let chained = [item("page", after: ["style", "font"]), item("style", after: ["font"])]
    #expect(starts(queue.add(chained + [item("font")])) == [2])
    #expect(starts(queue.finish(2, others: [])) == [1])
    #expect(starts(queue.finish(1, others: [])) == [0])
  }

  @Test("a hundred thousand items take linear time")
  func manyItems() {
    let items = (0..<100_000).map { place in
      MissionItem(
        path: "i\(place)", size: 1, hash: hash([UInt8(place & 255), UInt8(place >> 8 & 255)]),
        after: place % 2 == 1 ? ["i\(place - 1)"] : [])
    }
    var others: [ContentHash: [Int]] = [:]
    for (place, item) in items.enumerated() { others[item.hash, default: []].append(place) }
    var queue = JobQueue<ItemJobs>(limit: 4)
    var effects = queue.add(items)
    var places: [Int] = []
    repeat {
      for case .start(let place) in effects { places.append(place) }
      guard let place = places.popLast() else { break }
      let same = others[items[place].hash] ?? []
      effects = queue.finish(place, others: same.filter { $0 != place })
    } while true
    #expect(queue.isDone)
  }
}
