import FerryCompression
import FerryPlatform

extension HTTPResponse {
  /// Content below this many bytes is sent as it is: a frame's overhead would eat the gain.
  private static let compressionThreshold = 1024

  /// Returns the response in the form this client takes.
  ///
  /// Compresses when the client accepts it, and announces which codings requests may use (RFC 9110
  /// §12.5.3). Takes time in proportion to the content.
  func negotiated(acceptEncoding: String?) -> HTTPResponse {
    var response = self
    response.headers["Accept-Encoding"] = ContentCoding.acceptEncoding
    guard compressible, case .bytes(let content) = body,
      content.count >= Self.compressionThreshold, headers["Content-Encoding"] == nil
    else { return response }
    response.headers["Vary"] = Self.varying(headers.list(of: "Vary"))
    guard let coding = ContentCoding.negotiate(acceptEncoding: acceptEncoding),
      let coded = try? coding.compress(content), coded.count < content.count
    else { return response }
    response.body = .bytes(coded)
    response.headers["Content-Encoding"] = coding.rawValue
    // A strong tag promises the same bytes, which another coding is not.
    if let tag = headers["ETag"], tag.begins(with: "\"") { response.headers["ETag"] = "W/" + tag }
    return response
  }

  private static func varying(_ list: String?) -> String {
    guard let list, !list.isEmpty else { return "Accept-Encoding" }
    let named = list.lowercasedASCII
    return named.has("accept-encoding") || named == "*" ? list : list + ", Accept-Encoding"
  }
}
