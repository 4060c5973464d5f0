import FerryProtocol

/// Decides which spaces of a file are watched, and when the watch ends: a pure machine.
///
/// A failed space rests, with growing pauses, and the others continue. It is watched again after the pause, or
/// at once when it has another server or token. The watch ends when the file fails, or no space is left.
struct WatchedSpaces: Sendable {
  /// The step after a pause.
  enum Step: Equatable {
    /// Watches the first space again.
    case watchFirst
    /// Looks for the joined spaces to watch.
    case look
  }

  private struct Stop {
    var failures = 0
    /// The server and the token at that time.
    let access: ServerAccess
    var error: ReplicaError?
    /// False while it is watched again.
    var isResting: Bool
  }

  private let first: Int
  private var known: Set<Int>
  private var running = 1
  private var reason: ReplicaError?
  private var stops: [Int: Stop] = [:]

  /// - Parameter first: the number of the first space, which is watched from the beginning.
  init(first: Int) { (self.first, known) = (first, [first]) }

  /// Returns true if a space has stopped: the next look compares the server and the token.
  func isResting(_ number: Int) -> Bool { stops[number]?.isResting == true }

  /// Returns true if a joined space is to be watched now.
  ///
  /// - Parameter access: the server and the token of a resting space now.
  mutating func admit(_ number: Int, _ access: ServerAccess? = nil) -> Bool {
    if let access, let stop = stops[number], stop.isResting, !access.isSame(as: stop.access) {
      known.remove(number)
    }
    guard known.insert(number).inserted else { return false }
    begin(number)
    return true
  }

  private mutating func begin(_ number: Int) {
    stops[number]?.isResting = false
    running += 1
  }

  /// Returns the step after the pause of a stopped space; `nil` if it is watched already.
  mutating func resume(_ number: Int) -> Step? {
    guard isResting(number) else { return nil }
    guard number == first else {
      known.remove(number)
      return .look
    }
    begin(number)
    return .watchFirst
  }

  /// Records the end of a space's watch. Returns the error that ends the whole watch, if it does.
  mutating func end(_ error: ReplicaError) -> ReplicaError? {
    if error.isStop || error.concernsFile { return error }
    running -= 1
    reason = reason ?? error
    return running == 0 ? reason : nil
  }

  /// Records that a space rests. Returns the number of failures in a row, and whether the reason differs from
  /// the one before.
  mutating func rest(
    _ number: Int, _ access: ServerAccess, _ error: ReplicaError
  ) -> (failures: Int, isNews: Bool) {
    let before = stops[number]
    let failures = (before?.failures ?? 0) + 1
    stops[number] = Stop(failures: failures, access: access, error: error, isResting: true)
    return (failures, before?.error != error)
  }

  /// Records a successful sync.
  mutating func succeed(_ number: Int) { stops[number] = nil }
}
