import FerryPlatform

/// The addresses that a request may connect to, redirects included.
///
/// The members of a space choose some of the addresses requested by a device. A rule prevents
/// requests to services in the device's own network.
///
/// ```swift
/// var request = TransportRequest(.get, item.url)
/// request.destinations = .publicAddresses(besides: "sync.example.org")
/// ```
public enum DestinationRule: Sendable, Equatable {
  /// Any address.
  case any
  /// Addresses of the public internet, and every address of one host, by the name in the address. A
  /// connection is checked after the name is resolved. Behind a proxy, only literal addresses can
  /// be checked: the proxy resolves names.
  case publicAddresses(besides: String?)

  /// Returns true if a host may have any address.
  package func admitsEveryAddress(of host: String) -> Bool {
    switch self {
    case .any: true
    case .publicAddresses(let exempt): exempt.map { Self.areEqual($0, host) } ?? false
    }
  }

  /// Returns why a request may not go to a host at this address; `nil` if it may.
  ///
  /// - Parameter address: The resolved address; `nil` if there is none, or of another kind.
  package func refusal(
    of destination: RequestAddress, at address: NetworkAddress?
  ) -> TransportError? {
    if admitsEveryAddress(of: destination.host) || address?.isPublic == true { return nil }
    return Self.refusal(of: destination)
  }

  /// Returns why a request may not go to a host with an address not known yet; `nil` if it may.
  package func refusal(of destination: RequestAddress) -> TransportError? {
    guard !admitsEveryAddress(of: destination.host) else { return nil }
    if let literal = NetworkAddress(literal: destination.host) {
      return literal.isPublic ? nil : Self.refusal(of: destination)
    }
    let name = destination.host.lowercasedASCII.utf8
    let isLocal = ["localhost", ".localhost", ".local", ".internal"].contains { suffix in
      name.elementsEqual(suffix.utf8)
        || suffix.utf8.first == UInt8(ascii: ".")
          && name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
    return isLocal ? Self.refusal(of: destination) : nil
  }

  private static func refusal(of destination: RequestAddress) -> TransportError {
    TransportError(
      .badAddress,
      "\(destination.endpoint) is no public address: content from other members may not come from "
        + "the networks of this device, unless the app allows private addresses")
  }

  private static func areEqual(_ left: String, _ right: String) -> Bool {
    left.lowercasedASCII.utf8.elementsEqual(right.lowercasedASCII.utf8)
  }
}
