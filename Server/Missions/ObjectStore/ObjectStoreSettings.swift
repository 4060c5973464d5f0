import FerryNetworking
import FerryPlatform

/// The place of content in an S3-compatible store: `s3://BUCKET/PREFIX` at an endpoint.
package struct ObjectStoreSettings: Sendable, Equatable, CustomStringConvertible {
  package let bucket: String
  /// Empty, or with a slash at the end.
  package let prefix: String
  /// `https://HOST:PORT`, without a slash at the end.
  package let endpoint: String
  package let region: String
  /// The endpoint's host, with the port unless it is the scheme's own.
  let host: String

  /// - Parameters:
  ///   - url: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
  ///   - endpoint: The store's address; `nil` for Amazon's in the region.
  package init(
    _ url: String, endpoint: String?, region: String
  ) throws(ObjectStoreError) {
    guard let path = url.rest(after: "s3://") else {
      throw .configuration("“\(url)” does not name a bucket: write s3://BUCKET/PREFIX")
    }
    let parts = path.parts(at: "/")
    bucket = parts.first.map(String.init) ?? ""
    guard (3...63).contains(bucket.utf8.count),
      bucket.wholeMatch(of: /[a-z0-9][a-z0-9.-]*[a-z0-9]/) != nil
    else {
      throw .configuration(
        "“\(bucket)” cannot be a bucket: its name has 3 to 63 characters of a–z 0–9 . -")
    }
    let folders = parts.dropFirst().filter { !$0.isEmpty }
    guard
      folders.allSatisfy({ $0.wholeMatch(of: /[A-Za-z0-9_.-]+/) != nil && $0 != "." && $0 != ".." })
    else {
      throw .configuration("the prefix of “\(url)” may have the characters A–Z a–z 0–9 _ . - /")
    }
    prefix = folders.map { $0 + "/" }.joined()
    guard region.wholeMatch(of: /[A-Za-z0-9-]{1,64}/) != nil else {
      throw .configuration("“\(region)” cannot be a region")
    }
    self.region = region
    var base = endpoint ?? "https://s3.\(region).amazonaws.com"
    if base.ends(with: "/") { base.removeLast() }
    let address: RequestAddress
    do { address = try RequestAddress(base) } catch { throw .configuration(error.message) }
    let ownPort = address.isSecure ? 443 : 80
    host = address.port == ownPort ? address.host : "\(address.host):\(address.port)"
    let scheme = address.isSecure ? "https" : "http"
    self.endpoint = "\(scheme)://\(host)"
    let authority = base.parts(between: "://").dropFirst().joined()
    guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
      throw .configuration("the endpoint “\(base)” may have a scheme, a host and a port only")
    }
  }

  package var description: String { "s3://\(bucket)/\(prefix) at \(endpoint)" }
}
