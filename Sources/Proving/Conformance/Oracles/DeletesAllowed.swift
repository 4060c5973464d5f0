/// Checks that a writable row can be deleted.
///
/// Recording a delete needs no room for the row's values. So no delete of a row is refused for its
/// size.
package enum DeletesAllowed {
  package static let name = "deletes-allowed"

  /// - Parameters:
  ///   - statement: The failed statement of the user.
  ///   - reason: The error's text. Failures of the disk are not judged.
  package static func judge(device: String, statement: String, reason: String) -> [Violation] {
    guard statement.hasPrefix("DELETE"), reason.contains("ferry: ") else { return [] }
    return [Violation(oracle: name, "\(device) is refused \(statement): \(reason)")]
  }
}
