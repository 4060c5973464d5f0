/// The way of a file into a space of which the user is a member; pure.
///
/// ```swift
/// SpaceEntry(space: "groceries", server: url).step(of: [(1, address)])  // .join
/// ```
struct SpaceEntry {
  /// The space's name, as a server has sent it.
  var space: String
  /// The server's address.
  var server: String

  enum Step: Equatable {
    /// The file takes part in it already, under this number.
    case present(Int)
    case join
    /// The file has another space of this name, on the named server.
    case refuse(String)
  }

  /// - Parameter spaces: the spaces of the file, by number.
  func step(of spaces: [(number: Int, address: ServerAddress?)]) -> Step {
    for (number, address) in spaces {
      guard let address, address.space.value == space else { continue }
      if !ServerAddress.isSame(address.url, server) { return .refuse(address.url) }
      return .present(number)
    }
    return .join
  }
}

extension ServerAddress {
  /// Returns true for addresses of one server. A slash at the end makes no difference.
  package static func isSame(_ one: String, _ other: String) -> Bool {
    func trimmed(_ url: String) -> ArraySlice<UInt8> {
      var bytes = Array(url.utf8)[...]
      while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
      return bytes
    }
    return trimmed(one) == trimmed(other)
  }
}
