import FerryProtocol

/// A version of a bundle with one content.
struct BundleKey: Sendable, Hashable {
  var version: BundleVersion
  var manifest: ContentHash
}

/// A version's outcome on this device.
struct KeptOutcome: Sendable, Equatable {
  var key: BundleKey
  /// The reason of a failure; `nil` for a success.
  var failure: BundleReason?
  /// True if the version is not activated automatically any more.
  var isBlocked: Bool
  /// Greater than the number of each earlier outcome of the bundle on this device.
  var number: Int64
  /// True if the server has this outcome.
  var isReported = false
}

/// The versions of one bundle on this device, and their outcomes; pure (SPEC.md §31).
struct BundleState: Sendable, Equatable {
  /// The most kept outcomes of a bundle.
  static let outcomesMax = 100
  /// The most good versions kept beside the one in use: the last one may be withdrawn as well.
  static let formersMax = 2

  /// Why a device leaves a version.
  enum Leaving: Sendable, Equatable {
    /// It does not work: it is reported, and not activated automatically again.
    case failure(BundleReason)
    /// It was withdrawn, or the files are gone: nothing is reported.
    case absence
  }

  /// The version in use.
  private(set) var active: BundleKey?
  /// True if the version's page has confirmed that it works.
  private(set) var isConfirmed = false
  /// The last good versions before it, for the device to fall back to: the last one first.
  private(set) var formers: [BundleKey] = []
  /// The oldest one first.
  private(set) var outcomes: [KeptOutcome] = []

  init() {}

  init(
    active: BundleKey?, isConfirmed: Bool, formers: [BundleKey], outcomes: [KeptOutcome]
  ) {
    self.active = active
    self.isConfirmed = isConfirmed
    self.formers = formers
    self.outcomes = outcomes
  }

  /// Returns true if a version may not be activated without a user's request.
  func isBlocked(_ key: BundleKey) -> Bool {
    outcomes.contains { $0.key == key && $0.isBlocked }
  }

  /// Returns the reason why a version failed; `nil` if it did not.
  func failure(of key: BundleKey) -> BundleReason? {
    outcomes.last { $0.key == key }?.failure
  }

  /// Returns true if a version is neither in use, nor one to fall back to, nor a later one that may
  /// still be put in use.
  func isOutdated(_ key: BundleKey) -> Bool {
    guard let active, key != active, !formers.contains(key) else { return false }
    return key.version < active.version || isBlocked(key)
  }

  /// Outcomes missing on the server.
  var unreported: [KeptOutcome] { outcomes.filter { !$0.isReported } }

  /// The unreported outcomes by request. A request names a version once: an outcome of other content
  /// under the same version is in a later request.
  var unreportedByRequest: [[KeptOutcome]] {
    var requests: [[KeptOutcome]] = []
    for outcome in unreported {
      let free = requests.firstIndex { request in
        request.count < BundleReportsRequest.reportsMax
          && !request.contains { $0.key.version == outcome.key.version }
      }
      if let free { requests[free].append(outcome) } else { requests.append([outcome]) }
    }
    return requests
  }

  // MARK: Events

  /// Puts a version in use, on trial. A failed version gets another chance.
  mutating func activate(_ key: BundleKey) {
    for index in outcomes.indices where outcomes[index].key == key {
      outcomes[index].isBlocked = false
    }
    guard active != key else { return }
    if let active, isConfirmed || hasWorked(active) {
      // A version on trial for a second time is the last choice to fall back to.
      formers.insert(active, at: isConfirmed ? 0 : formers.count)
    }
    formers.removeAll { $0 == key }
    formers = Array(formers.prefix(Self.formersMax))
    (active, isConfirmed) = (key, false)
  }

  /// Returns true if the last page of a version worked.
  private func hasWorked(_ key: BundleKey) -> Bool {
    outcomes.contains { $0.key == key && $0.failure == nil && !$0.isBlocked }
  }

  /// Records that the page of a version works. Does nothing if another version is in use.
  ///
  /// - Parameter now: The wall clock, milliseconds since 1970. May jump.
  mutating func confirm(_ key: BundleKey, at now: Int64) {
    guard active == key else { return }
    isConfirmed = true
    record(key, failure: nil, at: now)
  }

  /// Leaves a version for the last good, usable one. If the version is not in use, it is only
  /// removed from those to fall back to.
  ///
  /// - Parameters:
  ///   - now: The wall clock, milliseconds since 1970. May jump.
  ///   - isUsable: Returns true if the files of a version are here, this shell runs it, and it is
  ///     not withdrawn.
  mutating func leave(
    _ key: BundleKey, _ leaving: Leaving, at now: Int64, isUsable: (BundleKey) -> Bool
  ) {
    if case .failure(let reason) = leaving { record(key, failure: reason, at: now) }
    formers.removeAll { $0 == key }
    guard active == key else { return }
    formers.removeAll(where: isBlocked)
    active = formers.first(where: isUsable)
    isConfirmed = active != nil
    formers.removeAll { $0 == active }
  }

  /// Records that the server has these outcomes; later ones of the same versions stay unreported.
  mutating func report(_ sent: [KeptOutcome]) {
    for index in outcomes.indices where sent.contains(outcomes[index]) {
      outcomes[index].isReported = true
    }
  }

  private mutating func record(_ key: BundleKey, failure: BundleReason?, at now: Int64) {
    let outcome = KeptOutcome(
      key: key, failure: failure, isBlocked: failure != nil, number: number(at: now))
    if let known = outcomes.last(where: { $0.key == key }) {
      // The page confirms with each load: one report is enough.
      if known.failure == failure, known.isBlocked == outcome.isBlocked { return }
      outcomes.removeAll { $0.key == key }
    }
    outcomes.append(outcome)
    if outcomes.count > Self.outcomesMax { outcomes.removeFirst() }
  }

  /// Returns the number of the next outcome. The newest outcome always stays, so no clock makes the
  /// numbers fall. If this state was lost, the clock makes them greater than the lost ones.
  private func number(at now: Int64) -> Int64 {
    let next = (outcomes.last?.number ?? 0) + 1
    return min(max(next, now), BundleReport.numberMax)
  }
}
