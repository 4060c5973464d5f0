/// One version of a web app in a shell.
public struct PageVersion: Sendable, Hashable {
  /// The name of the bundle.
  public var name: String
  /// The version, such as `1.2`.
  public var version: String
  /// The first document of a page load.
  public var entry: BundlePath
  /// The services used by the pages.
  public var services: [ServicePattern]
  /// Distinguishes contents of one version, such as a folder before and after an edit.
  public var content: String

  /// Creates a version; see the properties.
  public init(
    name: String, version: String, entry: BundlePath, services: [ServicePattern],
    content: String = ""
  ) {
    self.name = name
    self.version = version
    self.entry = entry
    self.services = services
    self.content = content
  }
}

/// The reason why a page does not work.
public struct PageFailure: Sendable, Equatable, CustomStringConvertible {
  /// The counted kinds.
  public enum Kind: String, Sendable, CaseIterable {
    /// The page did not confirm within ten seconds that it works.
    case silent
    /// The script threw an error before it was ready, or the process ended.
    case crashed
    /// It violated the Content-Security-Policy.
    case violated
  }

  /// The kind.
  public var kind: Kind
  /// A description for the developer, at most 500 characters.
  public var detail: String

  /// Creates a failure; cuts a long description.
  public init(_ kind: Kind, _ detail: String) {
    self.kind = kind
    self.detail = String(detail.prefix(500))
  }

  public var description: String { detail.isEmpty ? kind.rawValue : "\(kind.rawValue): \(detail)" }
}

/// There is no bundle to show, or one of the files cannot be read.
public struct BundleSourceError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The event, in a few words.
  public var event: String
  /// The reason.
  public var reason: String
  /// The next step for the user.
  public var next: String

  /// Creates an error; see the properties.
  public init(_ event: String, reason: String, next: String) {
    self.event = event
    self.reason = reason
    self.next = next
  }

  public var description: String { "\(event): \(reason)" }
}

/// The versions of one bundle on this device.
public protocol BundleSource: Sendable {
  /// Returns the version for the page load that begins now: the newest one without a failure, or
  /// else the last good one. The version's files stay until ``left(_:)`` was called once for each
  /// such call.
  func next() async throws(BundleSourceError) -> PageVersion

  /// Returns a file of a version, checked; `nil` if the version has no such file.
  func file(_ path: BundlePath, of version: PageVersion) async throws(BundleSourceError)
    -> ServedContent?

  /// Records the end of a page load. The version's files may go if no other page has it.
  func left(_ version: PageVersion) async

  /// Records that a page of a version works.
  func confirm(_ version: PageVersion) async

  /// Records a failure of a page of a version. Returns true if ``next()`` returns another version
  /// now.
  func fail(_ version: PageVersion, _ failure: PageFailure) async -> Bool
}
