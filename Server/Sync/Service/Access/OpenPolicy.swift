import FerryPlatform
import FerryProtocol

/// The rule for requests to a server without tokens. Any web page can make a browser send requests
/// to any address within reach of the browser's machine. So an open server refuses everything with
/// signs of a browser or a proxy (SPEC.md §8).
package struct OpenPolicy: Sendable, Equatable {
  private enum Hosts: Sendable, Equatable {
    case all
    /// This machine's names; with `addresses`, also every numeric address.
    case named(Set<String>, addresses: Bool)
  }

  private let hosts: Hosts
  /// The origins whose pages may use the server although it is open.
  var crossOrigin = CrossOriginRule.none

  /// Checks nothing: for a service without a network.
  package static let trusted = OpenPolicy(hosts: .all)

  /// Returns the policy of a server reachable only from this machine, under these names and those
  /// of loopback.
  package static func loopback(alsoNamed names: [String] = []) -> OpenPolicy {
    OpenPolicy(hosts: .named(Set(names.map { $0.lowercasedASCII }), addresses: false))
  }

  /// Returns the policy for `--insecure`: numeric addresses count, too. A page with a name bound to
  /// the server's address shows this name.
  package static func insecure(alsoNamed names: [String] = []) -> OpenPolicy {
    OpenPolicy(hosts: .named(Set(names.map { $0.lowercasedASCII }), addresses: true))
  }

  /// Returns the reason why a request is refused, or `nil`.
  func fault(of visitor: Visitor) -> Problem? {
    guard case .named(let names, let addresses) = hosts else { return nil }
    let isPermitted = visitor.isOwnPage || visitor.origin.map(crossOrigin.allows) ?? false
    if let origin = visitor.origin, !isPermitted {
      return Problem(
        .forbidden,
        "requests from web pages (\(origin.prefix(200))) need a server with tokens")
    }
    if let site = visitor.fetchSite, site != "none", !isPermitted {
      return Problem(.forbidden, "requests from web pages need a server with tokens")
    }
    if let header = visitor.forwarded {
      return Problem(
        .forbidden,
        "no tokens exist, and the request came through a proxy (\(header)): a server behind a "
          + "proxy needs tokens")
    }
    if let host = visitor.host, !allows(host, names, addresses: addresses) {
      return Problem(
        .forbidden,
        "no tokens exist, and the request names host \(host.prefix(200)): create a token, or allow "
          + "the name with --allowed-host")
    }
    if visitor.hasContent, !visitor.takesAnyContent, !visitor.isJSON {
      return Problem(
        .unsupportedMediaType,
        "no tokens exist, so a body must be application/json (Content-Type)")
    }
    return nil
  }

  private func allows(_ authority: String, _ names: Set<String>, addresses: Bool) -> Bool {
    if ListenAddress.isLoopback(authority: authority) { return true }
    guard let host = ListenAddress.host(ofAuthority: authority) else { return false }
    return names.contains(host.lowercasedASCII) || addresses && ListenAddress.isNumeric(host)
  }
}

extension Visitor {
  /// True if a page of this server sends the request: the console. Its origin is the host named by
  /// the request, which the policy checks as well. A page of another port has another origin.
  fileprivate var isOwnPage: Bool {
    guard let host, fetchSite == nil || fetchSite == "same-origin" else { return false }
    return origin.map { $0.lowercasedASCII == "http://" + host.lowercasedASCII } ?? true
  }
}
