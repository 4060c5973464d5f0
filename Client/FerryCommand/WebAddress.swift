import FerryPlatform

/// Addresses on the command line.
enum WebAddress {
  /// Returns true if a text begins with `http://` or `https://`, in any case (RFC 3986 §3.1).
  static func isOne(_ text: String) -> Bool {
    let address = text.lowercasedASCII
    return address.begins(with: "http://") || address.begins(with: "https://")
  }
}
