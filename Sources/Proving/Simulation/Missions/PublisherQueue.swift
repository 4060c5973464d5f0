/// Publications without an answer yet. Those of one mission or bundle go in order, and each is
/// repeated until it has an answer.
// SAFETY: touched on the scheduler's thread only.
final class PublisherQueue<Planned: Sendable>: @unchecked Sendable {
  private let scheduler: Scheduler
  private let attempt: (Planned) async -> Bool
  /// The oldest first, by the place of the mission or bundle.
  private var waiting: [Int: [Planned]] = [:]
  private var isStopped = false

  /// - Parameter attempt: Publishes; returns whether there was an answer.
  init(_ scheduler: Scheduler, attempt: @escaping (Planned) async -> Bool) {
    (self.scheduler, self.attempt) = (scheduler, attempt)
  }

  /// True if everything published is in force.
  var isIdle: Bool { waiting.isEmpty }

  /// Stops when the world ends.
  func stop() { isStopped = true }

  func add(_ planned: Planned, for place: Int) {
    waiting[place, default: []].append(planned)
    guard waiting[place]?.count == 1 else { return }
    scheduler.task { [self] in await work(place) }
  }

  private func work(_ place: Int) async {
    while !isStopped, let next = waiting[place]?.first {
      if await attempt(next) {
        waiting[place]?.removeFirst()
      } else {
        try? await scheduler.sleep(.milliseconds(700))
      }
    }
    waiting[place] = nil
  }
}
