import FerryProtocol

/// The check of a version in use: reads all files again, and records the damage (SPEC.md §21).
struct VersionCheck: Sendable {
  let versions: StoredVersions
  let row: MissionRow
  let manifest: MissionManifest
  private(set) var report: MissionVerification
  /// Missing or damaged content.
  private(set) var damaged: Set<ContentHash> = []

  init(_ row: MissionRow, _ manifest: MissionManifest, in versions: StoredVersions) {
    (self.versions, self.row, self.manifest) = (versions, row, manifest)
    report = MissionVerification(version: row.record.version)
  }

  private var plan: BundlePlan { BundlePlan(manifest, as: row.version) }

  /// Reads all files.
  ///
  /// - Parameter watching: receives the number of bytes read so far and, at the end, the damage.
  mutating func read(
    watching: (@Sendable (MissionVerification) -> Void)?
  ) async throws(MissionError) {
    var read: Set<ContentHash> = []
    for item in manifest.items where read.insert(item.hash).inserted {
      if Task.isCancelled { throw MissionError(.cancelled, "the check was stopped") }
      let content = StoredContent(hash: item.hash, size: item.size)
      let isIntact = try await versions.files.isIntact(content) { [report] bytes in
        var soFar = report
        soFar.bytes += bytes
        watching?(soFar)
      }
      if !isIntact { damaged.insert(item.hash) }
      report.bytes += item.size
    }
    report.damaged = manifest.items.filter { damaged.contains($0.hash) }.map(\.path)
    report.fault = try await versions.files.fault(in: plan)
    watching?(report)
  }

  /// Repairs the folder, after all content is here again.
  mutating func repairFolder() async throws(MissionError) {
    try await versions.files.repair(plan)
    report.isRepaired = true
  }

  /// Stores the damage as the version's reason, for a download to repair it; or removes it.
  func record() async throws(MissionError) {
    let isSound = report.isIntact || report.isRepaired
    guard isSound == row.isDamaged else { return }
    let item = report.damaged.first ?? report.fault?.item
    let reason = MissionError(
      .damaged, item: item, "its files are missing, or differ from the downloaded ones")
    try await versions.store.setDamage(isSound ? nil : reason, of: row.version)
  }
}

/// The result of a check of a mission.
public struct MissionVerification: Sendable, Equatable {
  public var version: Int64
  /// The bytes read.
  public var bytes: Int64 = 0
  /// Items with missing or damaged content.
  public var damaged: [String] = []
  /// How the folder differs from the manifest.
  public var fault: MissionError?
  /// True if all damage is repaired.
  public var isRepaired = false

  /// True if the check found no damage.
  public var isIntact: Bool { damaged.isEmpty && fault == nil }
}
