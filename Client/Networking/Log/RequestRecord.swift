/// An ended request, for a log. It contains no secrets: no field, no body, no values of parameters.
public struct RequestRecord: Sendable, Equatable, CustomStringConvertible {
  /// The result of a request.
  public enum Outcome: Sendable, Equatable {
    /// A response of the server, accepted by the filters.
    case network(status: Int)
    /// An earlier response: from a cache or a mission, or confirmed by the server.
    case cache(status: Int, age: Duration)
    /// A stale response, because the server was unreachable.
    case stale(status: Int, age: Duration)
    /// No response accepted by the filters. The reason is a word such as `offline`; the status is
    /// that of a rejected response.
    case failed(reason: String, status: Int?)
  }

  /// The method.
  public var method: TransportMethod
  /// The address without credentials and fragment; each value of a parameter is `*`.
  public var address: String
  /// The result.
  public var outcome: Outcome
  /// The time from the call to the result; for streams to the end of the body.
  public var duration: Duration
  /// How often the request was sent; zero if a cache answered.
  public var attempts: Int
  /// Bytes of the request's body, for one attempt.
  public var bytesSent: Int
  /// The received bytes of bodies, decoded; for downloads in all attempts.
  public var bytesReceived: Int

  /// The record as one line: `GET https://host/a?page=* network 200 0.034 s 1 attempt ↑0 ↓512`.
  public var description: String {
    let result =
      switch outcome {
      case .network(let status): "network \(status)"
      case .cache(let status, _): "cache \(status)"
      case .stale(let status, _): "stale \(status)"
      case .failed(let reason, let status): "\(reason) \(status.map { "\($0)" } ?? "-")"
      }
    let parts = duration.components
    let milliseconds = parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
    let fraction = String(1000 + milliseconds % 1000).dropFirst()
    return "\(method.rawValue) \(address) \(result) \(milliseconds / 1000).\(fraction) s "
      + "\(attempts) attempt\(attempts == 1 ? "" : "s") ↑\(bytesSent) ↓\(bytesReceived)"
  }
}

/// An address without secrets: a pure rule.
enum RedactedAddress {
  /// Returns the address without user, password and fragment, and with `*` for each value of a
  /// parameter.
  static func text(_ url: String) -> String {
    let whole = url.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard let scheme = whole.firstRange(of: Array("://".utf8)) else { return "" }
    let rest = whole[scheme.upperBound...]
    let authority = rest.prefix {
      $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
    }
    let host = authority.lastIndex(of: UInt8(ascii: "@")).map(authority.index(after:))
    let tail = rest[authority.endIndex...]
    let path = tail.prefix { $0 != UInt8(ascii: "?") }
    var text = String(Substring(whole[..<scheme.upperBound]))
    text += String(Substring(authority[(host ?? authority.startIndex)...]))
    text += String(Substring(path))
    guard path.endIndex < tail.endIndex else { return text }
    let items = tail[path.endIndex...].dropFirst().split(separator: UInt8(ascii: "&")).map { item in
      let name = item.prefix { $0 != UInt8(ascii: "=") }
      return name.endIndex == item.endIndex ? "*" : String(Substring(name)) + "=*"
    }
    return text + "?" + items.joined(separator: "&")
  }
}

extension NetworkError {
  /// The kind as a stable word.
  public var reason: String {
    switch kind {
    case .offline: "offline"
    case .timedOut: "timedOut"
    case .interrupted: "interrupted"
    case .secureConnectionFailed: "secureConnectionFailed"
    case .badAddress: "badAddress"
    case .redirectRefused: "redirectRefused"
    case .responseTooLarge: "responseTooLarge"
    case .cancelled: "cancelled"
    case .notCached: "notCached"
    case .rejected: "rejected"
    case .unacceptable: "unacceptable"
    case .business: "business"
    case .undecodable: "undecodable"
    case .fileFailed: "fileFailed"
    case .other: "other"
    }
  }
}
