import FerryCryptography
import FerryPlatform
import Foundation

/// Signatures of requests (AWS Signature Version 4); pure.
///
/// Source: "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API Reference.
package struct AWSSignature: Sendable {
  /// A request as it is signed.
  package struct Request: Sendable {
    package var method: String
    /// `host`, or `host:port` if the port is not the scheme's own.
    package var host: String
    /// Percent-encoded, from the slash on.
    package var path: String
    /// Names and values as they are, not encoded.
    package var query: [(name: String, value: String)]
    /// Further fields to sign.
    package var headers: [(name: String, value: String)]

    package init(
      method: String, host: String, path: String, query: [(name: String, value: String)] = [],
      headers: [(name: String, value: String)] = []
    ) {
      (self.method, self.host, self.path) = (method, host, path)
      (self.query, self.headers) = (query, headers)
    }
  }

  /// The SHA-256 of an empty body, in hexadecimal digits.
  package static let emptyHash = Hexadecimal.text(SHA256.digest(of: []))
  private static let algorithm = "AWS4-HMAC-SHA256"

  let credentials: AWSCredentials
  let region: String
  let service: String

  package init(_ credentials: AWSCredentials, region: String, service: String = "s3") {
    (self.credentials, self.region, self.service) = (credentials, region, service)
  }

  /// Returns the fields to send besides those of the request: `Authorization` and the fields signed
  /// by it, without `Host`.
  ///
  /// - Parameters:
  ///   - payloadHash: The SHA-256 of the body in hexadecimal digits.
  ///   - time: Seconds since 1970.
  package func headers(
    of request: Request, payloadHash: String, at time: Int64
  ) -> [(name: String, value: String)] {
    let stamp = Stamp(time)
    var added = [("X-Amz-Date", stamp.text)]
    if service == "s3" { added.append(("X-Amz-Content-Sha256", payloadHash)) }
    if let token = credentials.sessionToken { added.append(("X-Amz-Security-Token", token)) }
    var signed = request
    signed.headers += [("Host", request.host)] + added
    let (names, canonical) = Self.canonical(signed, payloadHash: payloadHash)
    let scope = scope(stamp)
    let signature = signature(of: canonical, stamp, scope)
    added.append(
      (
        "Authorization",
        "\(Self.algorithm) Credential=\(credentials.accessKey)/\(scope), SignedHeaders=\(names), "
          + "Signature=\(signature)"
      ))
    return added
  }

  /// Returns the query of an address that gives a request's answer to everybody with the address,
  /// for a while.
  ///
  /// - Parameters:
  ///   - time: Seconds since 1970.
  ///   - validity: Seconds.
  package func presignedQuery(
    of request: Request, at time: Int64, validity: Int
  ) -> [(name: String, value: String)] {
    let stamp = Stamp(time)
    let scope = scope(stamp)
    var signed = request
    signed.headers.append(("Host", request.host))
    signed.query += [
      ("X-Amz-Algorithm", Self.algorithm),
      ("X-Amz-Credential", "\(credentials.accessKey)/\(scope)"),
      ("X-Amz-Date", stamp.text), ("X-Amz-Expires", String(validity)),
      ("X-Amz-SignedHeaders", "host"),
    ]
    if let token = credentials.sessionToken {
      signed.query.append(("X-Amz-Security-Token", token))
    }
    let (_, canonical) = Self.canonical(signed, payloadHash: "UNSIGNED-PAYLOAD")
    return signed.query + [("X-Amz-Signature", signature(of: canonical, stamp, scope))]
  }

  private func scope(_ stamp: Stamp) -> String {
    "\(stamp.day)/\(region)/\(service)/aws4_request"
  }

  private func signature(of canonical: String, _ stamp: Stamp, _ scope: String) -> String {
    let text = [
      Self.algorithm, stamp.text, scope, Hexadecimal.text(SHA256.digest(of: canonical)),
    ].joined(separator: "\n")
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [stamp.day, region, service, "aws4_request", text] {
      key = HMACSHA256.code(for: Array(part.utf8), key: key)
    }
    return Hexadecimal.text(key)
  }

  /// Returns the names of the signed fields, and the canonical request.
  private static func canonical(
    _ request: Request, payloadHash: String
  ) -> (names: String, text: String) {
    let fields = request.headers.map { ($0.name.lowercasedASCII, trimmed($0.value)) }
      .sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    let names = fields.map(\.0).joined(separator: ";")
    let lines = fields.map { "\($0.0):\($0.1)\n" }.joined()
    let text = [
      request.method, request.path, encoded(request.query), lines, names, payloadHash,
    ].joined(separator: "\n")
    return (names, text)
  }

  /// Returns a query in canonical form, which is also the form to send.
  package static func encoded(_ query: [(name: String, value: String)]) -> String {
    query.map { (percentEncoded($0.name), percentEncoded($0.value)) }
      .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }

  /// Encodes each byte but the unreserved ones.
  ///
  /// - Parameter keepsSlashes: Whether a slash stays, as in the path of an object.
  package static func percentEncoded(_ text: String, keepsSlashes: Bool = false) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      case UInt8(ascii: "/") where keepsSlashes: encoded += "/"
      default: encoded += "%" + Hexadecimal.text([byte]).uppercasedASCII
      }
    }
    return encoded
  }

  /// Removes outer blanks, and makes one blank of several.
  private static func trimmed(_ value: String) -> String {
    value.words().joined(separator: " ")
  }

  /// A time as signatures have it: `20130524T000000Z`.
  private struct Stamp {
    let text: String
    var day: String { String(text.prefix(8)) }

    init(_ time: Int64) {
      var seconds = time_t(time)
      var parts = tm()
      gmtime_r(&seconds, &parts)
      func digits(_ number: Int32, _ count: Int = 2) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
      }
      text =
        digits(parts.tm_year + 1_900, 4) + digits(parts.tm_mon + 1) + digits(parts.tm_mday) + "T"
        + digits(parts.tm_hour) + digits(parts.tm_min) + digits(parts.tm_sec) + "Z"
    }
  }
}
