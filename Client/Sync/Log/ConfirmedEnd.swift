import FerryProtocol

/// The end of the chain confirmed by receipts under the device's present identifier, compared with
/// the tail named by a page (SPEC.md §5, §22).
struct ConfirmedEnd: Equatable {
  /// The last operation of the newest confirmed packet.
  let tail: OperationID
  /// True if a page has named the operation, or the receipt had a history hash past the cursor.
  let isProved: Bool

  /// Returns true if a page's tail must be compared with the packets, even if the page has no
  /// changes: the server names another operation than it confirmed, or names this one for the first
  /// time.
  static func isNews(_ tail: OperationID?, to end: ConfirmedEnd?) -> Bool {
    guard let end else { return false }
    return !end.isProved || tail != end.tail
  }
}
