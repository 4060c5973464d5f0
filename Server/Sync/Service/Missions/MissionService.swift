import FerryMissionServer
import FerryProtocol

/// The publisher of missions: it joins the store, the content and the key.
package final class MissionService: Sendable {
  /// Attempts at a publication while other callers publish concurrently.
  private static let attempts = 10

  /// The default limit of a space's unfinished uploads, in bytes.
  package static let uploadQuotaStandard: Int64 = 64 << 30

  package let blobs: any ContentStore
  /// Bytes of unfinished uploads of a space.
  package let uploadQuota: Int64
  let store: any SyncStore
  let clock: ServiceClock
  let keyFile: String
  private let limits: MissionLimits
  /// The key if it is known already; otherwise it is in ``keyFile``.
  let knownSigner: MissionSigner?

  /// - Parameters:
  ///   - keyFile: The key in PEM; made when it is first needed. `nil` for `mission-key.pem` beside
  ///     the content.
  ///   - signer: The key, if it is known already.
  package init(
    store: any SyncStore, blobs: any ContentStore, keyFile: String? = nil,
    signer: MissionSigner? = nil, clock: ServiceClock, limits: MissionLimits = .standard,
    uploadQuota: Int64 = MissionService.uploadQuotaStandard
  ) {
    knownSigner = signer
    self.store = store
    self.uploadQuota = uploadQuota
    self.blobs = blobs
    self.clock = clock
    self.limits = limits
    self.keyFile = keyFile ?? blobs.local.directory.path + "/mission-key.pem"
  }

  /// Prevents the collection of content until the hold is released; see
  /// ``BlobDirectory/acquire()``.
  package func acquireContent() async throws(MissionFailure) -> ContentHold {
    try await ContentHold(blobs, store, isExclusive: false)
  }

  /// Signs a mission and puts it in force. The content is in the store of content already.
  ///
  /// - Parameters:
  ///   - manifest: The version is 0 for the next one.
  ///   - ownContentOnly: Whether items may name only content named by this space's missions, or
  ///     sent by its admins. A caller with nothing but a hash must not get another space's content.
  ///   - isNewKey: Whether it may be signed with another key than the space's other missions.
  ///   - share: The devices to get the version of a bundle, if it is published for the first time.
  ///   - principal: For the audit log.
  ///   - hold: An existing hold of the caller.
  /// - Returns: The record in force. The same mission again writes nothing.
  package func publish(
    _ manifest: MissionManifest, in space: SpaceSummary, ownContentOnly: Bool,
    isNewKey: Bool = false, share: BundleShare = .all, by principal: Principal? = nil,
    under hold: ContentHold? = nil
  ) async throws(MissionFailure) -> MissionRecord {
    let others = try await MissionFailure.asking { () async throws(StoreError) in
      try await NearbyMissions(in: space.id, of: self.store)
    }
    if let problem = others.problem(with: manifest) { throw .refused(problem) }
    let signer = try await signingKey(beside: others, isNew: isNewKey, in: space, by: principal)
    // A second one could wait for a collector that waits for the first.
    let hold = if let hold { hold } else { try await self.acquireContent() }
    defer { withExtendedLifetime(hold) {} }
    try await check(manifest, in: space, ownContentOnly: ownContentOnly)
    for _ in 0..<Self.attempts {
      let known = try await MissionFailure.asking { () async throws(StoreError) in
        try await self.store.mission(manifest.id, in: space.id)
      }
      let answer = try await publish(
        manifest, over: known, in: space, signer, share, by: principal)
      switch answer {
      case .success(let record): return record
      case .failure(let problem):
        guard problem.code == .missionConflict, manifest.version == 0 else {
          throw .refused(problem)
        }
      }
    }
    throw .refused(
      Problem(.unavailable, "other clients are publishing mission \(manifest.id) at this moment")
    )
  }

  private func publish(
    _ manifest: MissionManifest, over known: StoredMission?, in space: SpaceSummary,
    _ signer: MissionSigner, _ share: BundleShare, by principal: Principal?
  ) async throws(MissionFailure) -> Result<MissionRecord, Problem> {
    let last = known?.lastVersion ?? 0
    if let current = known?.record, manifest.version == 0 || manifest.version == last {
      var same = manifest
      same.version = last
      let isSame = ContentHash(of: same.encoded()) == current.manifest
      let problem = MissionChange.problem(
        publishing: manifest, isSameDocument: isSame, over: current)
      if let problem { throw .refused(problem) }
      if isSame, current.signer == signer.publicKey { return .success(current) }
    }
    var next = manifest
    next.version = last + 1
    guard manifest.version == 0 || manifest.version == next.version else {
      return .failure(.staleMission(manifest.id, manifest.version, last: last))
    }
    let document = next.encoded()
    guard document.count <= limits.manifestBytes else {
      throw .refused(
        Problem(
          .limitExceeded,
          "the manifest has \(document.count) bytes; \(limits.manifestBytes) are allowed"))
    }
    let hash = try await blobs.content { (blobs) async throws(BlobError) in
      try await blobs.store(document)
    }
    let now = clock.wall()
    var record = MissionRecord(
      of: next, hash: hash, manifestSize: Int64(document.count),
      signature: signer.sign(document), signer: signer.publicKey, publishedAt: now)
    record.bundle?.share = known?.record?.bundle?.share ?? share
    let blobs = next.blobs + [MissionBlob(hash: hash, size: Int64(document.count))]
    return try await MissionFailure.asking { [record] () async throws(StoreError) in
      try await self.store.publishMission(
        record, blobs: Array(Set(blobs)).sorted(), in: space.id, now: now,
        by: principal.map { AuditMark($0, at: now) })
    }
  }

  // MARK: Content

  /// Throws a problem if the content of an item is not here.
  private func check(
    _ manifest: MissionManifest, in space: SpaceSummary, ownContentOnly: Bool
  ) async throws(MissionFailure) {
    let items = manifest.items.filter(\.isHosted)
    let hashes = Array(Set(items.map(\.hash))).sorted()
    var sizes = try await blobs.content { (blobs) async throws(BlobError) in
      try await blobs.sizes(of: hashes)
    }
    if ownContentOnly {
      let held = try await MissionFailure.asking { () async throws(StoreError) in
        try await self.store.heldBlobs(among: hashes, in: space.id)
      }
      let own = Set(held.map(\.hash))
      sizes = sizes.filter { own.contains($0.key) }
    }
    for item in items {
      guard let size = sizes[item.hash] else { throw .refused(.missing(item, in: space.name)) }
      guard size == item.size else {
        throw .refused(
          Problem(
            .contentMismatch,
            "item \(item.path): its content has \(size) bytes, not \(item.size)"))
      }
    }
  }

  /// Runs `body` on the content, and throws the errors as those of missions.
  package func content<T: Sendable>(
    _ body: (any ContentStore) async throws(BlobError) -> T
  ) async throws(MissionFailure) -> T {
    try await blobs.content(body)
  }
}

extension MissionManifest {
  /// The content of hosted items; a content is repeated if items share it.
  fileprivate var blobs: [MissionBlob] {
    items.filter(\.isHosted).map { MissionBlob(hash: $0.hash, size: $0.size) }
  }
}

extension Problem {
  fileprivate static func missing(_ item: MissionItem, in space: SpaceName) -> Problem {
    Problem(
      .contentMismatch,
      "item \(item.path): its content is missing; send it first with "
        + "PUT /v1/spaces/\(space)/blobs/\(item.hash)")
  }

  /// Maps the error of a call about content.
  package init(_ error: BlobError) {
    switch error {
    case .mismatch: self.init(.contentMismatch, error.description)
    case .wrongOffset: self.init(.uploadConflict, error.description)
    case .overQuota, .tooManyUploads: self.init(.uploadQuota, error.description)
    // The path is the server's own business.
    case .busy: self.init(.unavailable, error.description)
    case .diskFull: self.init(.unavailable, "the server's disk for missions is full")
    case .cancelled: self.init(.unavailable, "the request was cancelled")
    case .changed, .notAFile, .system, .missing, .remote:
      self.init(.unavailable, "the server cannot read or write its missions' content now")
    }
  }
}

extension MissionService {
  /// Creates the publisher of a server; `nil` if the server has no place for content.
  convenience init?(
    _ configuration: FerryServerConfiguration, store: any SyncStore
  ) throws(FerryServerError) {
    if let content = configuration.content {
      self.init(
        store: store, blobs: content, keyFile: configuration.missionKey,
        clock: configuration.clock, uploadQuota: configuration.uploadQuota)
      return
    }
    guard let path = configuration.blobs else { return nil }
    try self.init(
      store: store, directory: path, keyFile: configuration.missionKey,
      clock: configuration.clock, uploadQuota: configuration.uploadQuota)
  }

  /// Opens the directory, which is made when absent.
  package convenience init(
    store: any SyncStore, directory path: String, keyFile: String?, clock: ServiceClock,
    uploadQuota: Int64 = MissionService.uploadQuotaStandard
  ) throws(FerryServerError) {
    let directory: BlobDirectory
    do {
      directory = try BlobDirectory(path)
    } catch {
      throw .blobDirectory(path, reason: error.description)
    }
    self.init(
      store: store, blobs: BlobThreads(directory), keyFile: keyFile, clock: clock,
      uploadQuota: uploadQuota)
  }
}

extension StoreLocation {
  /// The default directory of missions' content; `nil` with a database.
  package var blobDirectory: String? {
    if case .embedded(let directory) = self { directory + "/blobs" } else { nil }
  }
}
