import FerryConformance

/// A planned action of a publisher or a user on a bundle, known from the seed before the run
/// starts.
package struct PlannedBundle: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    // The publisher.
    case publish, promote, withdraw
    // A device's user: opens the shell, names a version, or sees a page of the version in use
    // break.
    case open, name, damage
  }

  /// Names it in shrunk histories.
  package var ordinal: Int
  /// Milliseconds since the start.
  package var at: Int64
  package var kind: Kind
  /// The bundle's place among the bundles.
  package var bundle: Int
  /// The version's place among the versions of the bundle.
  package var version: Int
  /// The device's place among the devices; not used for the publisher's actions.
  package var device: Int
  /// The share of devices, in hundredths of a percent; for the publisher's actions.
  package var share: Int

  package var isPublishers: Bool { kind == .publish || kind == .promote || kind == .withdraw }

  /// Draws the actions of all devices and publishers on bundles, by time.
  package static func plan(seed: UInt64, options: WorldOptions) -> [PlannedBundle] {
    var planned: [PlannedBundle] = []
    let length = options.seconds * 1_000
    for bundle in 0..<max(0, options.bundles) {
      var random = SeededRandom(seed, "bundle-plan-\(bundle)")
      let versions = 2 + random.below(BundleLibrary.versions.count - 1)
      func add(_ kind: Kind, _ at: Int, version: Int = 0, device: Int = 0, share: Int = 0) {
        guard at < length else { return }
        planned.append(
          PlannedBundle(
            ordinal: 0, at: Int64(at), kind: kind, bundle: bundle, version: version,
            device: device, share: share))
      }
      var at = random.below(length / 8)
      for version in 0..<versions {
        // Most devices have a version to fall back to.
        add(
          .publish, at, version: version,
          share: version == 0 ? 10_000 : Self.share(&random))
        for _ in 0..<random.below(3) {
          let later = at + 1 + random.below(length / 2)
          add(.promote, later, version: version, share: Self.share(&random))
        }
        if random.chance(1, in: 4) {
          add(.withdraw, at + 1 + random.below(length / 2), version: version)
        }
        at += 1 + random.below(max(1, length * 3 / 2 / versions))
      }
      for device in 0..<options.devices
      where options.space(ofMission: bundle) == device % options.spaces {
        guard random.chance(4, in: 5) else { continue }
        let opened = random.below(length / 2)
        add(.open, opened, device: device)
        for _ in 0..<random.below(6) {
          let at = opened + random.below(length - opened)
          let version = random.below(versions)
          add(random.chance(1, in: 2) ? .name : .damage, at, version: version, device: device)
        }
      }
    }
    planned.sort {
      ($0.at, $0.kind.rawValue, $0.device, $0.bundle) < (
        $1.at, $1.kind.rawValue, $1.device, $1.bundle
      )
    }
    for index in planned.indices { planned[index].ordinal = index }
    return planned
  }

  private static func share(_ random: inout SeededRandom) -> Int {
    [0, 1_000, 2_500, 5_000, 10_000, 10_000][random.below(6)]
  }
}
