import FerryProtocol

/// What a row that is given back to a server says of its counters (SPEC.md §5).
///
/// A counter is the sum of what devices have added, and each of them sends its own increments
/// again. So the row itself brings nothing: however many devices give it back, every increment
/// counts once. Only where the server was made anew, and the history that is gone was older than
/// devices keep what they have sent, may nobody have the older increments any more. Then what the row
/// shows beyond the increments that this device sends again goes with it, as an increment that every
/// device names alike: it is added once, whoever gives the row back.
enum RescuedCounter {
  /// What a row shows beyond the increments that its device sends again.
  ///
  /// - Parameter pending: the own operations on the record.
  static func remainder(of column: Column, pending: [Operation]) -> Int64 {
    guard case .integer(var amount) = column.value else { return 0 }
    for operation in pending {
      for own in operation.columns where own.name == column.name {
        // A value that was set takes the place of all that others have added.
        guard operation.increments.contains(column.name), case .integer(let added) = own.value
        else { return 0 }
        amount &-= added
      }
    }
    return amount
  }

  /// The identifier of the increment that gives a counter's older part back, the same on every
  /// device.
  static func identifier(of column: Name, in key: RecordKey) -> OperationID {
    var hasher = RecordHasher()
    let digest = hasher.digest(of: key, [Column(column, .integer(0))])
    return OperationID(
      UniqueID(timestamp: .rescue, random: UInt64(truncatingIfNeeded: digest.value)))
  }
}

extension HybridTimestamp {
  /// When rows that are given back are said to be written: before all that anybody wrote.
  static let rescue = HybridTimestamp(milliseconds: 1)
}
