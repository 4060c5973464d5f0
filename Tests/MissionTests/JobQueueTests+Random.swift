import FerryTestSupport
import Testing

@testable import FerryMissions

// Random events, compared with a plain model of the limits.
extension JobQueueTests {
  private struct Random: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 31
    }
  }

  @Test(
    "after each event as many jobs run as the limits allow, the first ones by their turns",
    arguments: 1...12)
  func limitsHold(seed: UInt64) {
    var random = Random(state: seed &* 0x9E37_79B9_7F4A_7C15)
    var limits = JobLimits(atOnce: Int.random(in: 1...5, using: &random))
    if seed % 3 > 0 { limits.groupsAtOnce = Int.random(in: 1...3, using: &random) }
    if seed % 2 > 0 { limits.atOnceInGroup = Int.random(in: 1...3, using: &random) }
    var queue = JobQueue<Letters>(limits: limits)
    var names: [String] = []
    for number in 0..<400 {
      let name = names.randomElement(using: &random) ?? ""
      switch Int.random(in: 0..<10, using: &random) {
      case 0...2:
        let after = Int.random(in: 0..<4, using: &random) == 0 && !name.isEmpty ? [name] : []
        names.append("j\(number)")
        _ = queue.handle(
          .added([
            JobQueue<Letters>.Job(
              id: "j\(number)", priority: Int64.random(in: 0...2, using: &random),
              number: Int64(number), after: after,
              group: Int64.random(in: 0..<6, using: &random))
          ]))
      case 3: _ = queue.handle(.pause(name))
      case 4: _ = queue.handle(.resume(name))
      case 5: _ = queue.handle(.prioritise(name, Int64.random(in: 0...3, using: &random)))
      case 6: _ = queue.handle(.cancel(name, nil))
      case 7: _ = queue.handle(.rested(name))
      default:
        guard let running = names.filter(queue.isRunning).randomElement(using: &random) else {
          continue
        }
        let endings: [JobQueue<Letters>.Ending] = [
          .done, .done, .failed("x"), .paused("y"), .rests("z"), .stopped,
        ]
        _ = queue.handle(.ended(running, endings.randomElement(using: &random) ?? .done))
      }
      check(queue, names, limits, "seed \(seed), event \(number)")
    }
  }

  private func check(
    _ queue: JobQueue<Letters>, _ names: [String], _ limits: JobLimits, _ place: String
  ) {
    let jobs = names.compactMap { queue[$0] }
    let running = jobs.filter { queue.isRunning($0.id) }
    var inGroup: [Int64: Int] = [:]
    for job in running { inGroup[job.group ?? -1, default: 0] += 1 }
    #expect(running.count <= limits.atOnce, "\(place)")
    #expect(inGroup.count <= limits.groupsAtOnce, "\(place)")
    #expect(inGroup.values.allSatisfy { $0 <= limits.atOnceInGroup }, "\(place)")
    guard running.count < limits.atOnce else { return }
    let left = jobs.filter { job in
      let group = inGroup[job.group ?? -1] ?? 0
      return job.state == .ready && !job.isResting && !queue.isRunning(job.id)
        && job.after.allSatisfy { queue[$0]?.state == .done } && group < limits.atOnceInGroup
        && (group > 0 || inGroup.count < limits.groupsAtOnce)
    }
    #expect(left.isEmpty, "\(place): \(left.map(\.id)) could run")
  }
}
