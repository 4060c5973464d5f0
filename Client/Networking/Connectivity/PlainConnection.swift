import FerryPlatform

/// Connections with content that others can read.
package enum PlainConnection {
  /// Returns true if requests to an address go to another machine without encryption.
  package static func leavesMachine(_ url: String) -> Bool {
    guard let address = try? RequestAddress(url), !address.isSecure else { return false }
    let host = address.host.lowercasedASCII
    let name = host.begins(with: "[") ? String(host.dropFirst().dropLast()) : host
    return !HostName.isLoopback(name)
  }
}
