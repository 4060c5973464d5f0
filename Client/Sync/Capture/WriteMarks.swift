import FerryPlatform
import FerryProtocol

/// Marks of the operations recorded next in a transaction; see ``Replica/writeMarked(_:)``.
///
/// A mark stays until you set another one, and ends with the transaction. Writes without a change of
/// the row record nothing.
package struct WriteMarks {
  let capture: CaptureContext

  /// How long ago the next writes were made elsewhere, in milliseconds; 0 for writes of now. Their
  /// operations have the times of then, as far as the replica has not seen later ones.
  package var age: Int64 {
    get { capture.age }
    nonmutating set { capture.age = newValue }
  }

  /// Why the next writes overrule the values of other devices (SPEC.md §15). Their authors find the
  /// reason and their values in the quarantine. `nil` without a reason, also for an empty text;
  /// cut at ``Limits/reasonBytes``. Batches have none.
  package var reason: String? {
    get { capture.reason }
    nonmutating set {
      let text = newValue.map { String($0.cut(bytes: Limits.standard.reasonBytes)) } ?? ""
      capture.reason = text.isEmpty ? nil : text
    }
  }

  func reset() {
    age = 0
    reason = nil
  }
}
