import Glibc

/// The reason why a server did not start.
package enum HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Not an IPv4 or IPv6 address.
  case badAddress(String)
  /// The system refused the socket; `code` is the errno.
  case listen(String, UInt16, code: Int32)
  /// libmicrohttpd could not start its threads.
  case daemon

  package var description: String {
    switch self {
    case .badAddress(let address): "\(address) is not an IPv4 or IPv6 address"
    case .listen(let address, let port, EADDRINUSE):
      "port \(port) on \(address) is in use by another process"
    case .listen(let address, let port, EACCES):
      "no permission to listen on port \(port) of \(address)"
    case .listen(let address, let port, EADDRNOTAVAIL):
      "\(address) is not an address of this machine (port \(port))"
    case .listen(let address, let port, let code):
      "cannot listen on \(address) port \(port): \(String(cString: strerror(code)))"
    case .daemon: "the HTTP daemon could not start its threads"
    }
  }
}
