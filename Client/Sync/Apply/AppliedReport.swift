import FerryProtocol

/// Decides when a watch reports how far it has applied the changes (S1.13); pure.
///
/// A pull reports the changes before it. So a busy space needs no reports, and a quiet one needs one.
struct AppliedReport: Sendable, Equatable {
  private var seen: SequenceNumber?
  private var reported: SequenceNumber?

  /// Returns true if the device has applied changes without a report, and none since the last call.
  mutating func isDue(_ applied: SequenceNumber) -> Bool {
    defer { seen = applied }
    return seen == applied && reported != applied
  }

  /// True if the last seen changes are reported.
  var isReported: Bool { seen != nil && seen == reported }

  mutating func report(_ applied: SequenceNumber) { reported = applied }
}
