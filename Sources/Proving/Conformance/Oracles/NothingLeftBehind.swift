import FerryProtocol

/// Checks that a sync with success and without remaining operations in its report left nothing
/// behind. All operations recorded by the device before the sync are confirmed, in quarantine, or
/// merged away.
package enum NothingLeftBehind {
  package static let name = "nothing-left-behind"

  /// - Parameters:
  ///   - before: Unconfirmed operations at the start of the sync.
  ///   - after: Unconfirmed operations after it.
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
