import FerryNetworking
import FerryProtocol

/// The server of a replica.
public struct ServerAddress: Sendable, Equatable {
  /// The address: `http://` or `https://`, host, optional port and path.
  public var url: String
  /// The space on the server.
  public var space: SpaceName
  /// A PEM file of trusted certificate authorities besides the system's.
  public var certificateAuthorities: String?

  /// Creates an address.
  public init(url: String, space: SpaceName, certificateAuthorities: String? = nil) {
    self.url = url
    self.space = space
    self.certificateAuthorities = certificateAuthorities
  }

  /// Creates an address from text, and checks it.
  ///
  /// - Throws: ``ReplicaError/badAddress(_:)``; ``ReplicaError/refused(_:)`` if the space's name is
  ///   not valid.
  package init(
    checking url: String, space name: String, certificateAuthorities: String? = nil
  ) throws {
    guard let space = SpaceName(name) else {
      throw ReplicaError.refused(
        Problem(.unknownSpace, "'\(name)' is not a space's name: 1 to 63 of A-Z a-z 0-9 . _ -"))
    }
    do { try BaseURL(url).check() } catch { throw ReplicaError(error) }
    self.init(url: url, space: space, certificateAuthorities: certificateAuthorities)
  }
}
