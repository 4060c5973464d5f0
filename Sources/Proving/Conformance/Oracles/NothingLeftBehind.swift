import FerryProtocol

/// Checks that a sync that reports success and no remaining operations left nothing behind. All
/// operations that the device had recorded before the sync are confirmed, in quarantine, or merged
/// away.
package enum NothingLeftBehind {
  package static let name = "nothing-left-behind"

  /// - Parameters:
  ///   - before: Operations that were not confirmed when the sync began.
  ///   - after: Operations that are not confirmed after it.
  ///   - left: The number of remaining operations in the sync's report.
  package static func judge(
    device: String, before: [OperationID], after: [OperationID], left: Int
  ) -> [Violation] {
    let waiting = Set(after).intersection(before).sorted()
    guard left == 0, let first = waiting.first else { return [] }
    return [
      Violation(
        oracle: name,
        "a sync of \(device) reports success and leaves \(waiting.count) operations, \(first) first"
      )
    ]
  }
}
