/// The record of a device's number in a table with identity ``KeyIdentity/mapped``; pure.
///
/// A number belongs to a record while the row exists. It is *reserved* for one while a row refers
/// to it before the parent arrives, and *released* after the row's delete. Both end with the
/// transaction: a later row with the same number is another record.
struct NumberedRecord: Equatable {
  /// The record's identifier.
  let record: String
  /// The transaction that reserved or released the number; `nil` while the row exists.
  var transaction: Int64?

  /// The transaction of a pull's changes; it is no group of the user's.
  static let pull: Int64 = 0

  /// Returns the state after the insert of a row with the number.
  static func inserted(
    _ known: NumberedRecord?, in transaction: Int64, fresh: () throws -> String
  ) rethrows -> NumberedRecord {
    guard let known, known.isCurrent(in: transaction) else {
      return NumberedRecord(record: try fresh(), transaction: nil)
    }
    return NumberedRecord(record: known.record, transaction: nil)
  }

  /// Returns the state after a row refers to the number.
  static func referred(
    _ known: NumberedRecord?, in transaction: Int64, fresh: () throws -> String
  ) rethrows -> NumberedRecord {
    guard let known, known.isCurrent(in: transaction) else {
      return NumberedRecord(record: try fresh(), transaction: transaction)
    }
    return known
  }

  /// Returns the state before the insert of a row for the record with a number chosen by this
  /// device.
  ///
  /// - Parameter known: the state of the record's number; `nil` if it had none.
  static func chosen(
    _ known: NumberedRecord?, for record: String, in transaction: Int64
  ) -> NumberedRecord {
    if let known, known.transaction == nil { return known }
    return NumberedRecord(record: record, transaction: transaction)
  }

  /// Returns the state after the delete of the number's row.
  func deleted(in transaction: Int64) -> NumberedRecord {
    NumberedRecord(record: record, transaction: transaction)
  }

  private func isCurrent(in transaction: Int64) -> Bool {
    self.transaction == nil || self.transaction == transaction
  }
}
