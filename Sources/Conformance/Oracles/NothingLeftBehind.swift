import FerryProtocol

/// A sync that reports success, and no operations that are left, has left nothing behind: all that
/// the device had recorded before the sync began is confirmed, in quarantine, or merged away.
package enum NothingLeftBehind {
  package static let name = "nothing-left-behind"

  /// - Parameters:
  ///   - before: operations that were not confirmed when the sync began.
  ///   - after: operations that are not confirmed after it.
  ///   - left: how many are left, by the sync's report.
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
