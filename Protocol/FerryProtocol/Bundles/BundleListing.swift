/// The state of a bundle's version in the catalogue (SPEC.md §31).
public struct BundleListing: Sendable, Hashable {
  /// The devices that take the version.
  public var share: BundleShare
  /// The oldest supported shell; `nil` for any.
  public var minShell: BundleVersion?
  /// When it was withdrawn, milliseconds since 1970; `nil` while it is offered.
  public var withdrawnAt: Int64?

  public init(
    share: BundleShare = .all, minShell: BundleVersion? = nil, withdrawnAt: Int64? = nil
  ) {
    self.share = share
    self.minShell = minShell
    self.withdrawnAt = withdrawnAt
  }

  /// True if no device may use it any more.
  public var isWithdrawn: Bool { withdrawnAt != nil }
}

/// A change of a published version.
package enum BundleChange: Sendable, Equatable {
  /// Rolls it out to this share of the devices.
  case share(BundleShare)
  /// Ends the use on all devices, for good.
  case withdrawal
}

extension BundleListing {
  /// The value of the record's column `kind`.
  static let kind = "bundle"

  /// The columns of the catalogue's record, by name.
  var columns: [Column] {
    [Column("kind", .text(Self.kind))]
      + (minShell.map { [Column("minShell", .text($0.description))] } ?? []) + stateColumns
  }

  /// The columns affected by a change, by name.
  package var stateColumns: [Column] {
    [Column("rollout", .integer(Int64(share.hundredths)))]
      + (withdrawnAt.map { [Column("withdrawnAt", .integer($0))] } ?? [])
  }

  /// Reads the columns of a record; `nil` unless it is a bundle's. An invalid share counts as none
  /// of the devices.
  init?(value: (Name) -> Value?) {
    guard value("kind") == .text(Self.kind) else { return nil }
    func integer(_ name: Name) -> Int64? {
      if case .integer(let number)? = value(name) { number } else { nil }
    }
    share = integer("rollout").flatMap { BundleShare(hundredths: $0) } ?? .none
    if case .text(let text)? = value("minShell") { minShell = BundleVersion(text) }
    withdrawnAt = integer("withdrawnAt").map { min(max(0, $0), Limits.wallTimeMax) }
  }
}

extension MissionRecord {
  /// The bundle's version behind the mission; `nil` for an ordinary mission.
  public var bundleID: BundleID? { bundle == nil ? nil : BundleID(mission: id) }
}
