import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

/// The rules of a bundle on a device, by the machines alone.
@Suite("A bundle's state", .hangLimit)
struct BundleStateTests {
  private static func key(_ version: Int, _ content: UInt8 = 0) -> BundleKey {
    BundleKey(
      version: made(BundleVersion(version)),
      manifest: made(ContentHash([UInt8](repeating: content, count: 31) + [UInt8(version)])))
  }

  private let reason = BundleReason(bounding: "blank page")

  private func leave(
    _ state: inout BundleState, _ version: Int, _ leaving: BundleState.Leaving,
    without missing: Int...
  ) {
    state.leave(Self.key(version), leaving, at: 0) { key in
      !missing.map { Self.key($0) }.contains(key)
    }
  }

  /// Returns the numbers of the version in use, and of the good ones before it.
  private func versions(_ state: BundleState) -> [Int?] {
    ([state.active] + state.formers).map { $0?.version.numbers[0] }
  }

  @Test("a failure returns to the last good version, and the failed one is blocked and reported")
  func fallback() {
    var state = BundleState()
    state.activate(Self.key(1))
    state.confirm(Self.key(1), at: 0)
    state.activate(Self.key(2))
    #expect(versions(state) == [2, 1] && !state.isConfirmed)
    leave(&state, 2, .failure(reason))
    #expect(versions(state) == [1] && state.isConfirmed && state.isBlocked(Self.key(2)))
    #expect(state.unreported.map(\.failure) == [nil, reason])
    // A version that never worked is no version to fall back to.
    state.activate(Self.key(3))
    state.activate(Self.key(4))
    #expect(versions(state) == [4, 1])
    leave(&state, 4, .failure(reason))
    #expect(versions(state) == [1])
  }

  @Test("a good version that the user names stays the one to fall back to")
  func namedAgain() {
    var state = BundleState()
    state.activate(Self.key(1))
    state.confirm(Self.key(1), at: 0)
    state.activate(Self.key(2))
    state.activate(Self.key(1))
    #expect(versions(state)[0] == 1)
    // Another version comes before a page of the named one has worked again.
    state.activate(Self.key(2))
    leave(&state, 2, .failure(reason))
    #expect(versions(state) == [1] && state.isConfirmed)
    state.activate(Self.key(2))
    state.activate(Self.key(1))
    leave(&state, 1, .failure(reason))
    #expect(versions(state) == [nil])
  }

  @Test(
    "a device that leaves a named version for the later one before it falls back to the named one")
  func namedAndLeft() {
    var state = BundleState()
    for version in 1...2 {
      state.activate(Self.key(version))
      state.confirm(Self.key(version), at: 0)
    }
    // The user names version 1, and version 2 comes back before a page of version 1 has loaded.
    state.activate(Self.key(1))
    state.activate(Self.key(2))
    #expect(versions(state) == [2, 1] && !state.isOutdated(Self.key(1)))
    state.confirm(Self.key(2), at: 0)
    leave(&state, 2, .failure(reason))
    #expect(versions(state) == [1] && state.isConfirmed)
  }

  @Test("a version that worked and fails later is left, too")
  func lateFailure() {
    var state = BundleState()
    for version in 1...3 {
      state.activate(Self.key(version))
      state.confirm(Self.key(version), at: 0)
    }
    #expect(versions(state) == [3, 2, 1])
    leave(&state, 3, .failure(reason))
    #expect(versions(state) == [2, 1] && state.failure(of: Self.key(3)) == reason)
    leave(&state, 2, .failure(reason))
    leave(&state, 1, .failure(reason))
    #expect(versions(state) == [nil] && !state.isConfirmed)
  }

  @Test("a device whose last good version is withdrawn has the one before it")
  func earlier() {
    var trial = BundleState()
    for version in 1...2 {
      trial.activate(Self.key(version))
      trial.confirm(Self.key(version), at: 0)
    }
    trial.activate(Self.key(3))
    var state = trial
    // Version 2 is withdrawn, and version 3 fails.
    leave(&state, 3, .failure(reason), without: 2)
    #expect(versions(state) == [1, 2] && state.isConfirmed)
    state = trial
    // Version 3 is withdrawn, and version 2 fails.
    state.confirm(Self.key(3), at: 0)
    leave(&state, 3, .absence)
    leave(&state, 2, .failure(reason))
    #expect(versions(state) == [1] && state.isConfirmed)
    // A version tried again is the last one to fall back to.
    state = trial
    leave(&state, 3, .failure(reason))
    state.activate(Self.key(1))
    state.activate(Self.key(4))
    #expect(versions(state) == [4, 2, 1])
    // Two good versions are kept beside the one in use.
    state = trial
    state.confirm(Self.key(3), at: 0)
    state.activate(Self.key(4))
    #expect(versions(state) == [4, 3, 2] && state.isOutdated(Self.key(1)))
  }

  @Test("a device never falls back to a version that is gone, withdrawn or failed")
  func unusable() {
    var state = BundleState()
    state.activate(Self.key(1))
    state.confirm(Self.key(1), at: 0)
    state.activate(Self.key(2))
    let before = state
    leave(&state, 2, .failure(reason), without: 1)
    #expect(versions(state) == [nil, 1])
    state = before
    // The former version fails in a page still open.
    leave(&state, 1, .failure(reason))
    #expect(versions(state) == [2] && state.isBlocked(Self.key(1)))
    leave(&state, 2, .absence)
    #expect(versions(state) == [nil] && !state.isBlocked(Self.key(2)))
  }

  @Test("pages of a version that is not in use change nothing but its outcome")
  func strangers() {
    var state = BundleState()
    state.activate(Self.key(1))
    state.confirm(Self.key(2), at: 0)
    #expect(!state.isConfirmed && state.outcomes.isEmpty)
    state.confirm(Self.key(1), at: 0)
    leave(&state, 2, .failure(reason))
    #expect(versions(state) == [1] && state.isConfirmed && state.isBlocked(Self.key(2)))
    // The same version with other content is another one.
    state.confirm(Self.key(1, 9), at: 0)
    leave(&state, 3, .absence)
    #expect(versions(state) == [1] && state.outcomes.count == 2)
  }

  @Test("a failed version gets another chance when it is activated by name")
  func again() {
    var state = BundleState()
    state.activate(Self.key(1))
    leave(&state, 1, .failure(reason))
    state.activate(Self.key(1))
    #expect(versions(state) == [1] && !state.isBlocked(Self.key(1)))
    state.confirm(Self.key(1), at: 0)
    #expect(state.outcomes.map(\.failure) == [nil] && state.unreported.count == 1)
  }

  @Test("an outcome is reported once, and again only when it changes")
  func reports() {
    var state = BundleState()
    state.activate(Self.key(1))
    state.confirm(Self.key(1), at: 0)
    let sent = state.unreported
    // It changes while the report travels.
    leave(&state, 1, .failure(reason))
    state.report(sent)
    #expect(state.unreported.map(\.failure) == [reason])
    state.report(state.unreported)
    #expect(state.unreported.isEmpty)
    state.activate(Self.key(1))
    for _ in 0..<3 { state.confirm(Self.key(1), at: 0) }
    state.report(state.unreported)
    state.confirm(Self.key(1), at: 0)
    #expect(state.unreported.isEmpty && state.outcomes.count == 1)
  }

  @Test("each outcome has a greater number than those before it, whatever the clock is")
  func numbers() {
    var state = BundleState()
    func note(_ now: Int64) -> Int64? {
      state.activate(Self.key(1))
      if state.failure(of: Self.key(1)) == nil, !state.outcomes.isEmpty {
        state.leave(Self.key(1), .failure(reason), at: now) { _ in true }
      } else {
        state.confirm(Self.key(1), at: now)
      }
      return state.outcomes.last?.number
    }
    #expect(note(-5) == 1)
    #expect(note(0) == 2)
    #expect(note(1_000) == 1_000)
    // The clock goes back.
    #expect(note(7) == 1_001)
    #expect(note(.max) == BundleReport.numberMax)
    // A clock that has been absurd once stops no report.
    #expect(note(8) == BundleReport.numberMax)
  }

  @Test("outcomes are bounded")
  func bounded() {
    var state = BundleState()
    for version in 1...250 {
      state.activate(Self.key(version))
      leave(&state, version, .failure(reason))
    }
    #expect(state.outcomes.count == BundleState.outcomesMax)
    #expect(state.isBlocked(Self.key(250)))
  }

  // MARK: Choices

  private func offer(
    _ version: Int, share: BundleShare = .all, minShell: Int? = nil, isWithdrawn: Bool = false
  ) -> BundleOffer {
    let id = BundleID(made(BundleName("board")), made(BundleVersion(version)))
    let manifest = MissionManifest(
      space: spaceName, id: id.mission, version: 1,
      items: [MissionItem(path: "index.html", size: 1, hash: Self.key(1).manifest)],
      bundle: BundleDeclaration(id, minShell: minShell.flatMap { BundleVersion($0) }))
    var record = MissionRecord(
      of: manifest, hash: Self.key(version).manifest, manifestSize: 1, signature: [], signer: [],
      publishedAt: 1)
    record.bundle?.share = share
    record.bundle?.withdrawnAt = isWithdrawn ? 1 : nil
    return made(BundleOffer(record))
  }

  private func choice(_ offers: [BundleOffer], _ state: BundleState = BundleState())
    -> BundleChoice
  {
    BundleChoice(
      offers: offers, state: state, device: DeviceID(UniqueID(high: 1, low: 2)),
      shell: made(BundleVersion(2)))
  }

  @Test("a device takes the latest version that is offered, runs here and did not fail")
  func best() {
    var failed = BundleState()
    failed.activate(Self.key(3))
    leave(&failed, 3, .failure(reason))
    for (offers, state, best) in [
      ([offer(1), offer(3), offer(2)], BundleState(), 3),
      ([offer(1), offer(3, share: .none)], BundleState(), 1),
      ([offer(1), offer(3, isWithdrawn: true)], BundleState(), 1),
      ([offer(1), offer(2, minShell: 2), offer(3, minShell: 3)], BundleState(), 2),
      ([offer(1), offer(3)], failed, 1), ([offer(3)], failed, nil), ([], BundleState(), nil),
    ] as [([BundleOffer], BundleState, Int?)] {
      #expect(choice(offers, state).best?.id.version.numbers[0] == best)
    }
  }

  @Test("a version in use stays if its rollout shrinks or it is retracted, and goes if withdrawn")
  func staying() {
    var state = BundleState()
    state.activate(Self.key(2))
    for (offers, next) in [
      ([offer(1), offer(2)], nil), ([offer(1), offer(2, share: .none)], nil),
      ([offer(1)], nil), ([offer(1), offer(2), offer(3)], 3),
      ([offer(1), offer(2, isWithdrawn: true)], 1), ([offer(2, isWithdrawn: true)], nil),
    ] as [([BundleOffer], Int?)] {
      #expect(choice(offers, state).next?.id.version.numbers[0] == next)
    }
  }
}
