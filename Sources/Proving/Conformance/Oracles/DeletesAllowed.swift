/// Checks that a writable row can be deleted.
///
/// Recording a delete needs no room for the row's values. So no delete of a row is refused for its
/// size.
package enum DeletesAllowed {
  package static let name = "deletes-allowed"

  /// - Parameters:
  ///   - statement: The failed statement of the user.
  ///   - reason: The error's text.
  ///   - isRefused: True if the replica refused to record the write. Failures of the disk are not
  ///     judged.
  package static func judge(
    device: String, statement: String, reason: String, isRefused: Bool
  ) -> [Violation] {
    guard statement.hasPrefix("DELETE"), isRefused else { return [] }
    return [Violation(oracle: name, "\(device) is refused \(statement): \(reason)")]
  }
}
