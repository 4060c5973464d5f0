/// The limits of principals' request rates, each and all of a space together. 0 switches a limit
/// off.
///
/// Principals of one account (``Principal/account``) count as one.
package struct RateLimits: Sendable, Equatable {
  /// Requests a second for each principal.
  package var requests: Int
  /// Requests that a principal may send at once after a pause.
  package var requestBurst: Int
  /// Bytes a second for each principal, both directions together.
  package var bytes: Int
  /// Failed look-ups a minute for each address.
  package var failures: Int
  /// Requests a second for each space. Above it, all principals in the space have equal shares.
  package var spaceRequests = 4_000
  /// Requests of a space at once after a pause.
  package var spaceRequestBurst = 20_000
  /// Bytes a second for each space, both directions together.
  package var spaceBytes = 1 << 30

  /// Seconds of the rate of bytes for use at once after a pause.
  static let byteBurstSeconds = 10

  package init(requests: Int, requestBurst: Int, bytes: Int, failures: Int) {
    self.requests = requests
    self.requestBurst = requestBurst
    self.bytes = bytes
    self.failures = failures
  }

  /// Generous: a token may serve a whole fleet of devices.
  package static let standard = RateLimits(
    requests: 1_000, requestBurst: 5_000, bytes: 256 << 20, failures: 60)
}
