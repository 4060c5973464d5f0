import FerryProtocol

/// A version of a bundle in the catalogue, on this device, or both.
public struct BundleStatus: Sendable, Equatable {
  public var id: BundleID
  public var title = ""
  /// The share of devices that take it; `nil` if the catalogue does not have it.
  public var share: BundleShare?
  /// The oldest shell that it runs on; `nil` for any.
  public var minShell: BundleVersion?
  /// Whether it is offered to this device.
  public var isOffered = false
  /// Whether it was withdrawn.
  public var isWithdrawn = false
  /// Whether all its files are here.
  public var isDownloaded = false
  /// Whether it is the version in use.
  public var isActive = false
  /// Whether it is in use, and its page has reported that it works.
  public var isConfirmed = false
  /// Whether it is a good version before the one in use, to which the device may fall back.
  public var isPrevious = false
  /// The reason why it failed on this device; it is not activated automatically again.
  public var failure: BundleReason?
  /// Bytes of all files.
  public var size: Int64 = 0
}

/// The options of the bundles on a device.
public struct BundleOptions: Sendable {
  /// The version of the shell, which a bundle's `minShell` is compared with.
  public var shell: BundleVersion

  /// - Parameter shell: by default the version of this release's shell.
  public init(shell: BundleVersion = .shell) { self.shell = shell }
}

extension BundleVersion {
  /// The version of this release's shell.
  public static let shell = BundleVersion.first
}
