import FerryProtocol

/// A version of a bundle in the catalogue, on this device, or both.
public struct BundleStatus: Sendable, Equatable {
  public var id: BundleID
  public var title = ""
  /// The share of devices with this version; `nil` if the catalogue does not have it.
  public var share: BundleShare?
  /// The oldest shell for this version; `nil` for any.
  public var minShell: BundleVersion?
  /// True if it is offered to this device.
  public var isOffered = false
  /// True if it was withdrawn.
  public var isWithdrawn = false
  /// True if all files are here.
  public var isDownloaded = false
  /// True if it is the version in use.
  public var isActive = false
  /// True if the version is in use, and the page has confirmed that it works.
  public var isConfirmed = false
  /// True if it is a good version before the one in use: the device may fall back to it.
  public var isPrevious = false
  /// The reason why it failed on this device; it is not activated automatically again.
  public var failure: BundleReason?
  /// Bytes of all files.
  public var size: Int64 = 0
}

/// The options of the bundles on a device.
public struct BundleOptions: Sendable {
  /// The version of the shell, for comparison with a bundle's `minShell`.
  public var shell: BundleVersion

  /// - Parameter shell: by default the version of this release's shell.
  public init(shell: BundleVersion = .shell) { self.shell = shell }
}

extension BundleVersion {
  /// The version of this release's shell.
  public static let shell = BundleVersion.first
}
