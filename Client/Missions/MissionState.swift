import FerryProtocol

/// Where a mission stands on this device (seed row S5.1).
public enum MissionState: String, Sendable, CaseIterable {
  /// Asked for, and waiting for its turn.
  case ready
  /// Its turn has come; it may wait for a connection.
  case downloading
  /// It rests with all that was fetched until somebody resumes it.
  case paused
  /// Given up by somebody: what was fetched for it is gone.
  case cancelled
  /// It could not be fetched as it was published: what was fetched for it is gone.
  case failed
  /// Complete and checked.
  case done

  /// Whether it neither goes on nor can be resumed.
  public var isFinal: Bool { self == .cancelled || self == .failed || self == .done }
}

/// Why a mission waits, rests or failed, and why a call about one could not be answered.
public struct MissionError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons a caller treats differently. Their names are kept in the mission store.
  public enum Kind: String, Sendable, CaseIterable {
    /// Neither the catalogue nor this device has it.
    case notFound
    /// The server, or an item's own address, cannot be reached or is overloaded: what was fetched
    /// is kept and it goes on by itself.
    case offline
    /// There is not room enough on the disk: what was fetched is kept.
    case diskFull
    /// It waits for another mission.
    case waiting
    /// Another process is fetching it.
    case busy
    /// A mission that comes first failed, was cancelled, or is not in the catalogue.
    case dependency
    /// The content is not what the manifest says, however often it was fetched.
    case wrongContent
    /// The server does not let this device have it, or not any more: what was fetched is kept.
    case forbidden
    /// The server refuses its content, and the catalogue does not have it any more.
    case retracted
    /// The server refused, or answered with something else than was asked for.
    case refused
    /// The manifest is not what the catalogue says, or cannot be read by this version.
    case badManifest
    /// The signature over the manifest is not its signer's.
    case badSignature
    /// The manifest was signed by another key than the one that this device trusts: what was
    /// fetched is kept.
    case untrustedSigner
    /// What lies on this device is not what was downloaded.
    case damaged
    /// The content is sealed with another key, or with none.
    case wrongKey
    /// A file or folder could not be read or written.
    case files
    /// The mission store could not be read or written.
    case database
    /// The work was cancelled.
    case cancelled
  }

  public var kind: Kind
  /// The item's path, where it is one item's.
  public var item: String?
  /// What happened, in a sentence.
  public var message: String

  public init(_ kind: Kind, item: String? = nil, _ message: String) {
    self.kind = kind
    self.item = item
    self.message = message
  }

  /// Whether it passes by itself, or when there is a connection or room again.
  public var isTransient: Bool {
    switch kind {
    case .offline, .diskFull, .waiting, .busy: true
    default: false
    }
  }

  public var description: String { item.map { "\($0): \(message)" } ?? message }
}

/// A mission as the catalogue and this device have it.
public struct MissionStatus: Sendable, Equatable {
  public var id: MissionID
  /// The version that is being fetched, or else the one in use, or else the catalogue's.
  public var version: Int64
  public var title: String
  public var summary: String
  /// `nil` where nobody asked for it.
  public var state: MissionState?
  /// Why it waits, rests or failed.
  public var reason: MissionError?
  public var items: Int64
  public var itemsDone: Int64
  /// Bytes of ``version`` that are there, of ``bytesTotal``.
  public var bytesDone: Int64
  public var bytesTotal: Int64
  /// The version in use; `nil` until one was downloaded whole.
  public var activeVersion: Int64?
  /// The catalogue's version; `nil` where the mission was retracted.
  public var publishedVersion: Int64?

  /// Whether the catalogue has another content under the number of the version in use: its server
  /// was set back, and has counted once more.
  public var isRepublished = false

  /// Whether it is ``MissionState/downloading`` and nobody is at it: the process that was has ended.
  public var isInterrupted = false

  /// Whether a whole version is there (seed row S4.6).
  public var isDownloaded: Bool { activeVersion != nil }

  /// Whether the catalogue has a version later than the one in use, or another of its number.
  public var hasUpdate: Bool {
    guard let activeVersion, let publishedVersion else { return false }
    return isRepublished || publishedVersion > activeVersion
  }
}
