import FerryProtocol

/// The counters of a row re-uploaded to a server (SPEC.md §5).
///
/// A counter is the sum of the devices' increments, and each device sends the own increments again.
/// So the row itself adds nothing: however many devices re-upload it, every increment counts once.
///
/// There is one exception. If the server starts from scratch, the lost history may be older than
/// the increments kept by devices. Then the device also uploads the remainder of the row, beyond
/// the own increments, as one increment. All devices give it the same identifier, so it counts
/// once.
enum RescuedCounter {
  /// Returns the part of a counter's value beyond the increments that this device sends again.
  ///
  /// - Parameter pending: the own operations on the record.
  static func remainder(of column: Column, pending: [SyncOperation]) -> Int64 {
    guard case .integer(var amount) = column.value else { return 0 }
    for operation in pending {
      for own in operation.columns where own.name == column.name {
        // A value set directly replaces all increments of others.
        guard operation.increments.contains(column.name), case .integer(let added) = own.value
        else { return 0 }
        amount &-= added
      }
    }
    return amount
  }

  /// Returns the identifier of the increment for the older part of a counter, the same on every
  /// device.
  ///
  /// - Parameter time: the identifier's time, the same on every device.
  static func identifier(
    of column: Name, in key: RecordKey, at time: HybridTimestamp = .rescue
  ) -> OperationID {
    var hasher = RecordHasher()
    let digest = hasher.digest(of: key, [Column(column, .integer(0))])
    return OperationID(
      UniqueID(timestamp: time, random: UInt64(truncatingIfNeeded: digest.value)))
  }
}

extension HybridTimestamp {
  /// The time of re-uploaded rows: before all real writes.
  static let rescue = HybridTimestamp(milliseconds: 1)
}
