import FerryCryptography
import FerryPlatform
import FerryProtocol

/// The behaviours of an app, replaceable by signed patches until the next release (SPEC.md §34).
///
/// A patch is a small script, signed by `ferryd patch sign`. Ferry runs it in a separate process,
/// without files, network and other processes. It has only the input and the services granted by
/// the app. Register all behaviours first, then load the patches.
///
/// ```swift
/// let behaviours = try await Behaviours.open(
///   app: "org.example.shop", version: "2.3.0", trusting: [key], ledger: "patches.json")
/// ```
///
/// One process at a time may use a ledger.
public actor Behaviours {
  /// The most failed calls in ``fallbacks``.
  public static let fallbacksMax = 100

  nonisolated let limits: PatchLimits
  nonisolated let runner: (any PatchRunning)?
  private let app: String
  private let version: String
  private let keys: [Ed25519.PublicKey]
  private let file: PatchLedgerFile
  private let now: @Sendable () -> Int64
  private let executor: ThreadExecutor

  private var ledger = PatchLedger()
  private var grants: [String: Set<String>] = [:]
  private var patches: [String: AcceptedPatch] = [:]
  private var counts: [String: BehaviourStatus] = [:]
  /// The failed calls since the app started, the oldest first.
  public private(set) var fallbacks: [PatchFallback] = []
  /// The reason why the ledger's last change is not on the disk; `nil` if it is there.
  public private(set) var ledgerFault: PatchError?

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Opens the ledger; the file is created with the first entry.
  ///
  /// - Parameters:
  ///   - app: the app's identifier; a patch names it.
  ///   - version: the app's release; a patch names the releases it applies to.
  ///   - keys: the public keys; their holders may patch the app.
  ///   - ledger: the file with the newest patch of each behaviour and the patch's failures.
  ///   - host: the program to run patches. Without it, native code runs.
  ///   - limits: the limits of each call.
  /// - Throws: ``PatchError/ledger(path:reason:)`` if the file exists and is not a ledger.
  public static func open(
    app: String, version: String, trusting keys: [PatchKey], ledger: String,
    host: PatchHost? = .installed, limits: PatchLimits = PatchLimits()
  ) async throws(PatchError) -> Behaviours {
    try await open(
      app: app, version: version, trusting: keys, ledger: ledger, limits: limits,
      runner: host.map { ProcessRunner($0) }, now: Self.systemTime)
  }

  static func open(
    app: String, version: String, trusting keys: [PatchKey], ledger: String, limits: PatchLimits,
    runner: (any PatchRunning)?, now: @escaping @Sendable () -> Int64
  ) async throws(PatchError) -> Behaviours {
    let behaviours = Behaviours(app, version, keys, ledger, limits, runner, now)
    try await behaviours.readLedger()
    return behaviours
  }

  private init(
    _ app: String, _ version: String, _ keys: [PatchKey], _ ledger: String, _ limits: PatchLimits,
    _ runner: (any PatchRunning)?, _ now: @escaping @Sendable () -> Int64
  ) {
    self.app = app
    self.version = version
    self.keys = keys.map(\.key)
    self.limits = limits
    self.runner = runner
    self.now = now
    file = PatchLedgerFile(path: ledger)
    executor = ThreadExecutor(name: "ferry-behaviour")
  }

  // MARK: Behaviours

  /// Registers a behaviour with the native code. A name can be registered once.
  ///
  /// - Parameters:
  ///   - name: 1 to 128 characters of `A–Z a–z 0–9 . _ + -`, the first a letter or digit.
  ///   - services: the services that patches of this behaviour may call.
  ///   - native: the code of the release. It runs without a patch, and when a patch fails.
  public func register<Input: Encodable & Sendable, Output: Decodable & Sendable>(
    _ name: String, granting services: [PatchService] = [],
    native: @escaping @Sendable (Input) async throws -> Output
  ) -> Behaviour<Input, Output> {
    precondition(PatchName.isValid(name), "a behaviour's name: \(PatchName.rule)")
    precondition(grants[name] == nil, "behaviour \(name) is registered already")
    var granted: [String: PatchService] = [:]
    for service in services {
      precondition(PatchName.isValid(service.name), "a service's name: \(PatchName.rule)")
      precondition(
        granted.updateValue(service, forKey: service.name) == nil,
        "service \(service.name) is granted twice")
    }
    grants[name] = Set(granted.keys)
    counts[name] = BehaviourStatus(name: name)
    return Behaviour(name, of: self, services: granted, native: native)
  }

  /// The registered behaviours by name, with their patches and failures.
  public var status: [BehaviourStatus] {
    counts.values.sorted { $0.name < $1.name }.map { status in
      var status = status
      if let patch = patches[status.name], patch.document.expires > now() {
        let isDisabled = ledger.entries[status.name]?.isDisabled ?? false
        status.patch = isDisabled ? nil : patch.sequence
        status.expires = patch.document.expires
        status.isDisabled = isDisabled
      }
      return status
    }
  }

  /// Enables the disabled patch of a behaviour again.
  public func enable(_ name: String) throws(PatchError) {
    if ledger.enable(name) { try file.write(ledger) }
  }

  // MARK: Patches

  /// Puts exactly these patches into force. A behaviour without one runs the native code.
  ///
  /// - Throws: ``PatchError/ledger(path:reason:)`` if the ledger cannot be written: no patch comes
  ///   into force then.
  @discardableResult
  public func load(_ documents: [[UInt8]]) throws(PatchError) -> PatchReport {
    try load(documents.indices.map { ("\($0)", .success(documents[$0])) })
  }

  /// Puts exactly the patches of a folder into force: the files `*.ferrypatch`, not those in
  /// folders below. A mission delivers such a folder.
  ///
  /// ```swift
  /// let report = try await behaviours.load(folder: try await missions.path("patches"))
  /// for patch in report.refused { print("\(patch.source): \(patch.reason)") }
  /// ```
  ///
  /// - Throws: ``PatchError``; the patches before stay in force then.
  @discardableResult
  public func load(folder: String) throws(PatchError) -> PatchReport {
    try load(try PatchFolder.read(folder))
  }

  private func load(
    _ files: [(source: String, content: Result<[UInt8], PatchFolder.Fault>)]
  ) throws(PatchError) -> PatchReport {
    var report = PatchReport()
    var readable: [(source: String, bytes: [UInt8])] = []
    for file in files {
      switch file.content {
      case .success(let bytes): readable.append((file.source, bytes))
      case .failure(let fault):
        report.refused.append(.init(source: file.source, reason: .unreadable(fault.reason)))
      }
    }
    let decision = PatchDecision(app: app, version: version, keys: keys, grants: grants, now: now())
    let outcome = decision.decide(readable.map(\.bytes), ledger)
    var next = ledger
    for patch in outcome.accepted.values {
      next.accept(patch.behaviour, sequence: patch.sequence, digest: patch.digest)
    }
    if next != ledger { try file.write(next) }
    ledger = next
    patches = [:]
    for (place, file) in readable.enumerated() {
      if let patch = outcome.accepted[place] {
        patches[patch.behaviour] = patch
        report.loaded.append(
          .init(
            behaviour: patch.behaviour, sequence: patch.sequence, expires: patch.document.expires,
            source: file.source,
            isDisabled: ledger.entries[patch.behaviour]?.isDisabled ?? false))
      } else if let reason = outcome.refused[place] {
        report.refused.append(.init(source: file.source, reason: reason))
      }
    }
    return report
  }

  /// Returns the patch for a call now.
  func patch(for name: String) -> AcceptedPatch? {
    guard let patch = patches[name], patch.document.expires > now(),
      ledger.entries[name]?.isDisabled != true
    else { return nil }
    return patch
  }

  func recordSuccess(of patch: AcceptedPatch) {
    counts[patch.behaviour]?.patchedCalls += 1
    if ledger.recordSuccess(patch.behaviour, sequence: patch.sequence) { writeLedger() }
  }

  func recordFailure(of patch: AcceptedPatch, _ reason: PatchFailure) {
    let name = patch.behaviour
    counts[name]?.failedCalls += 1
    counts[name]?.lastFailure = reason
    fallbacks.append(
      PatchFallback(behaviour: name, sequence: patch.sequence, reason: reason, time: now()))
    if fallbacks.count > Self.fallbacksMax { fallbacks.removeFirst() }
    guard reason.isFaultOfPatch else { return }
    if ledger.recordFailure(name, sequence: patch.sequence, limit: limits.failuresInARow) {
      writeLedger()
    }
  }

  /// Writes the ledger after a call; a failure of the write must not fail the call.
  private func writeLedger() {
    do throws(PatchError) {
      try file.write(ledger)
      ledgerFault = nil
    } catch {
      ledgerFault = error
    }
  }

  private func readLedger() throws(PatchError) { ledger = try file.read() }

  private static let systemTime: @Sendable () -> Int64 = {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}
