import FerryProtocol

/// A version in the catalogue.
struct BundleOffer: Sendable, Equatable {
  var id: BundleID
  var listing: BundleListing
  var manifest: ContentHash

  /// `nil` for an ordinary mission.
  init?(_ record: MissionRecord) {
    guard let id = record.bundleID, let listing = record.bundle else { return nil }
    (self.id, self.listing, manifest) = (id, listing, record.manifest)
  }

  var key: BundleKey { BundleKey(version: id.version, manifest: manifest) }

  /// Returns true if a shell of this version runs it.
  func runs(on shell: BundleVersion) -> Bool { listing.minShell.map { $0 <= shell } ?? true }
}

/// Decides which version of a bundle a device uses (SPEC.md §31); pure.
struct BundleChoice: Sendable {
  /// The versions of one bundle in the catalogue.
  var offers: [BundleOffer]
  var state: BundleState
  var device: DeviceID
  var shell: BundleVersion

  /// Returns true if a version is offered to this device.
  func isOffered(_ offer: BundleOffer) -> Bool {
    isInRollout(offer) && offer.runs(on: shell)
  }

  private func isInRollout(_ offer: BundleOffer) -> Bool {
    !offer.listing.isWithdrawn
      && BundleRollout.includes(device, in: offer.listing.share, of: offer.id)
  }

  /// The latest offered version without a failure here.
  var best: BundleOffer? {
    offers.filter { isOffered($0) && !state.isBlocked($0.key) }.max { $0.id < $1.id }
  }

  /// The version to put in use, or `nil` if the right one is in use. A version in use stays if the
  /// rollout shrinks.
  var next: BundleOffer? { best.flatMap { replaces($0) ? $0 : nil } }

  /// Returns true if a version may replace the one in use without a user's request.
  func replaces(_ offer: BundleOffer) -> Bool {
    guard offer.key != state.active, !state.isBlocked(offer.key) else { return false }
    guard let active = state.active, !isWithdrawn(active), runs(active) else { return true }
    return offer.id.version >= active.version
  }

  /// Returns true if this shell runs a version, by the catalogue. After a downgrade of the program,
  /// the version in use may need a later shell.
  private func runs(_ key: BundleKey) -> Bool {
    offers.first { $0.key == key }?.runs(on: shell) ?? true
  }

  /// The latest version for this device, if the shell were newer.
  var tooNew: BundleOffer? {
    offers.filter { isInRollout($0) && !$0.runs(on: shell) && !state.isBlocked($0.key) }
      .max { $0.id < $1.id }
  }

  /// The latest offered version with a failure on this device.
  var failed: BundleOffer? {
    offers.filter { isOffered($0) && state.isBlocked($0.key) }.max { $0.id < $1.id }
  }

  /// Returns true if a version was withdrawn, by the catalogue. A version missing there stays in
  /// use, like a retracted mission.
  func isWithdrawn(_ key: BundleKey) -> Bool {
    offers.contains { $0.id.version == key.version && $0.listing.isWithdrawn }
  }
}
