/// The transaction under way on a connection, as the ledgers of all spaces of a file name it.
final class FileTransaction {
  private var known: Int64?

  /// Returns a number unique to this transaction, never ``NumberedRecord/pull``.
  func mark(_ random: () -> UInt64) -> Int64 {
    if let known { return known }
    let mark = Int64(random() >> 2) + 1
    known = mark
    return mark
  }

  /// Ends the transaction.
  func end() { known = nil }
}
