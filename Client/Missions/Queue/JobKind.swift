import FerryProtocol

/// A kind of jobs in a ``JobQueue``: their names, and the reasons why they wait or fail.
protocol JobKind: Sendable {
  associatedtype ID: Hashable & Comparable & Sendable
  associatedtype Failure: Error & Equatable

  /// Returns the reason for a job with an obstacle; `nil` if this kind reports none.
  ///
  /// - Parameter cause: the reason of the job that comes first.
  static func reason(_ obstacle: JobObstacle<ID>, _ cause: Failure?) -> Failure?
}

/// The reason why a job cannot start.
enum JobObstacle<ID> {
  /// It waits for this job.
  case waits(for: ID)
  /// This job comes first, and is unknown.
  case lacks(ID)
  /// This job comes first, and failed or was cancelled.
  case failed(ID, JobState)
  /// It waits for itself.
  case cycle
}

extension JobObstacle {
  /// True if the job may start later.
  var isWait: Bool { if case .waits = self { true } else { false } }

  /// Returns the reason for users.
  ///
  /// - Parameters:
  ///   - noun: the name of one job of the kind.
  ///   - lack: how a job that comes first can be unknown.
  ///   - cause: the reason of the job that comes first.
  func text(_ noun: String, lack: String, cause: String?) -> String {
    switch self {
    case .waits(let id): return "it waits for \(noun) \(id)"
    case .lacks(let id): return "its predecessor, \(noun) \(id), \(lack)"
    case .failed(let id, let state):
      let end = state == .failed ? "failed" : "was cancelled"
      return "its predecessor, \(noun) \(id), \(end)\(cause.map { ": \($0)" } ?? "")"
    case .cycle: return "it waits for itself: the \(noun)s form a cycle"
    }
  }
}

/// The limits of a queue.
struct JobLimits: Sendable, Equatable {
  /// The most jobs at once.
  var atOnce: Int
  /// The most groups with jobs at once.
  var groupsAtOnce = Int.max
  /// The most jobs of one group at once.
  var atOnceInGroup = Int.max
}

/// Missions in a queue.
enum MissionJobs: JobKind {
  static func reason(_ obstacle: JobObstacle<MissionID>, _ cause: MissionError?) -> MissionError? {
    MissionError(
      obstacle.isWait ? .waiting : .dependency,
      obstacle.text(
        "mission", lack: "is neither stored nor requested", cause: cause?.description))
  }
}

typealias MissionQueue = JobQueue<MissionJobs>

typealias DownloadJobQueue = JobQueue<DownloadJobs>

/// Downloads in a queue.
enum DownloadJobs: JobKind {
  static func reason(
    _ obstacle: JobObstacle<DownloadID>, _ cause: DownloadError?
  ) -> DownloadError? {
    DownloadError(
      obstacle.isWait ? .waiting : .dependency,
      obstacle.text("download", lack: "was removed before it was done", cause: cause?.message))
  }

  /// Returns why a download cannot be added.
  static func error(_ id: DownloadID, _ fault: JobFault<DownloadID>) -> DownloadError {
    switch fault {
    case .duplicate: DownloadError(.dependency, "there is a download \(id) already")
    case .unknown(let first):
      DownloadError(
        .dependency, "download \(id) waits for \(first), which is not in the queue")
    case .cycle:
      DownloadError(
        .dependency, "download \(id) waits for itself: the downloads form a cycle")
    }
  }
}

/// The items of a checked manifest in a queue, by their places: none of them waits for itself.
/// Items with the same content are one group.
enum ItemJobs: JobKind {
  static func reason(_ obstacle: JobObstacle<Int>, _ cause: MissionError?) -> MissionError? { nil }
}

extension JobQueue where Kind == ItemJobs {
  /// Creates a queue that fetches `limit` items at once, and each content once.
  init(limit: Int) { self.init(limits: JobLimits(atOnce: limit, atOnceInGroup: 1)) }

  /// Adds all items in the manifest's order, each after those it waits for.
  mutating func add(_ items: [MissionItem]) -> [Effect] {
    var (places, contents) = ([String: Int](), [ContentHash: Int64]())
    for (place, item) in items.enumerated() {
      places[item.path] = place
      if contents[item.hash] == nil { contents[item.hash] = Int64(place) }
    }
    return handle(
      .added(
        items.enumerated().map { place, item in
          Job(
            id: place, number: Int64(place), after: item.after.compactMap { places[$0] },
            group: contents[item.hash])
        }))
  }

  /// Records that the content of a started item is complete, and with it the other items of the
  /// same content.
  mutating func finish(_ place: Int, others: [Int]) -> [Effect] {
    var effects: [Effect] = []
    for other in others { effects += handle(.finished(other)) }
    return effects + handle(.ended(place, .done))
  }
}
