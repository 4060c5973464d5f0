import FerryProtocol

/// The reason why a call about bundles failed.
public struct BundleError: Error, Sendable, Equatable, CustomStringConvertible {
  public enum Kind: String, Sendable, CaseIterable {
    /// There is no such bundle or version.
    case notFound
    /// The version is not offered to this device, or was withdrawn.
    case notOffered
    /// The version failed on this device: it is used again only by name.
    case failedHere
    /// The version needs a newer shell.
    case shellTooOld
    /// No version on this device can be put in use.
    case nothingToActivate
    /// The version is not downloaded.
    case notDownloaded
    /// The files could not be fetched or read: see ``BundleError/mission``.
    case mission
    /// The state of the bundles could not be read or written.
    case database
  }

  public var kind: Kind
  /// A description in one sentence.
  public var message: String
  /// The error of the version's mission.
  public var mission: MissionError?

  public init(_ kind: Kind, _ message: String, mission: MissionError? = nil) {
    self.kind = kind
    self.message = message
    self.mission = mission
  }

  init(_ error: MissionError) {
    self.init(.mission, error.description, mission: error)
  }

  public var description: String { message }
}
