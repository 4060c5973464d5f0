import Foundation

extension Duration {
  /// The longest wait of a test for another process before it counts as hung: the one place to set
  /// it. No result depends on it; a machine ten times as slow passes too. `FERRY_TEST_HANG_LIMIT`
  /// names other seconds, so a fault shows sooner while you repair it.
  package static let hangLimit = Duration.seconds(
    ProcessInfo.processInfo.environment["FERRY_TEST_HANG_LIMIT"].flatMap { Int($0) } ?? 600)
}
