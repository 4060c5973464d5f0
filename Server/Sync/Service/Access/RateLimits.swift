/// How fast principals may send requests. 0 switches a limit off.
package struct RateLimits: Sendable, Equatable {
  /// Requests a second for each principal.
  package var requests: Int
  /// Requests that a principal may send at once after a pause.
  package var requestBurst: Int
  /// Bytes a second for each principal, both directions together.
  package var bytes: Int
  /// Failed authentications a minute for each address.
  package var failures: Int

  /// Seconds of the rate of bytes that a principal may use at once after a pause.
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
