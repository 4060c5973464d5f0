import FerryProtocol

/// The reason why a mission waits, is paused or failed, or why a call about it failed.
public struct MissionError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons that callers treat differently. The mission store has their names.
  public enum Kind: String, Sendable, CaseIterable {
    /// Neither the catalogue nor this device has it.
    case notFound
    /// The server, or an item's own address, is unreachable or overloaded. The fetched parts are
    /// kept, and the mission continues by itself.
    case offline
    /// The disk has not enough space: the fetched parts are kept.
    case diskFull
    /// It waits for another mission.
    case waiting
    /// Another process fetches it.
    case busy
    /// A mission that comes first failed, was cancelled, or is not in the catalogue.
    case dependency
    /// The content differs from the manifest, however often it was fetched.
    case wrongContent
    /// The server denies this device access to it: the fetched parts are kept.
    case forbidden
    /// The server rejects the content, and the catalogue no longer has it.
    case retracted
    /// The server rejected the request, or the answer does not fit the request.
    case refused
    /// The manifest differs from the catalogue, or this version cannot read it.
    case badManifest
    /// The signature over the manifest is not the signer's.
    case badSignature
    /// The manifest is signed by an untrusted key: the fetched parts are kept.
    case untrustedSigner
    /// The content on this device differs from the downloaded one.
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
  /// The path of an item, if the reason concerns one item.
  public var item: String?
  /// A description in one sentence.
  public var message: String

  public init(_ kind: Kind, item: String? = nil, _ message: String) {
    self.kind = kind
    self.item = item
    self.message = message
  }

  /// True if the problem passes by itself, or when a connection or space returns.
  public var isTransient: Bool {
    switch kind {
    case .offline, .diskFull, .waiting, .busy: true
    default: false
    }
  }

  public var description: String { item.map { "\($0): \(message)" } ?? message }
}

/// A mission in the catalogue and on this device.
public struct MissionStatus: Sendable, Equatable {
  public var id: MissionID
  /// The version under way, or else the one in use, or else the catalogue's.
  public var version: Int64
  public var title: String
  public var summary: String
  /// The state; `nil` if nobody requested the mission.
  public var state: MissionState?
  /// The reason why the mission waits, is paused or failed.
  public var reason: MissionError?
  public var items: Int64
  public var itemsDone: Int64
  /// The local bytes of ``version``, of ``bytesTotal``.
  public var bytesDone: Int64
  public var bytesTotal: Int64
  /// The version in use; `nil` until one was downloaded completely.
  public var activeVersion: Int64?
  /// The catalogue's version; `nil` if the mission was retracted.
  public var publishedVersion: Int64?

  /// True if the catalogue has other content under the number of the version in use: the server was
  /// rolled back, and has used the number again.
  public var isRepublished = false

  /// True if the state is ``JobState/downloading`` although the fetching process has ended.
  public var isInterrupted = false

  /// True if a complete version is here.
  public var isDownloaded: Bool { activeVersion != nil }

  /// True if the catalogue has a later version than the one in use, or another one with the same
  /// number.
  public var hasUpdate: Bool {
    guard let activeVersion, let publishedVersion else { return false }
    return isRepublished || publishedVersion > activeVersion
  }
}
