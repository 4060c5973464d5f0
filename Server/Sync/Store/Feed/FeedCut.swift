import FerryProtocol

/// The division of a space's history into the transactions of one page; pure.
struct FeedCut: Equatable {
  /// An operation of the history that a page may contain.
  struct Row: Equatable {
    let sequence: SequenceNumber
    /// The number of operations of the transaction before it.
    let ordinal: Int64
    let characters: Int64

    /// The place of the transaction's first operation.
    var transaction: SequenceNumber { sequence - ordinal }
  }

  /// The number of operations in the page.
  let count: Int
  /// True if the page ends within a transaction.
  let isWithinTransaction: Bool

  /// - Parameters:
  ///   - rows: The next operations in their order: one more than `limit` if there are so many.
  ///   - characters: The length of values at which the page ends. The first operation is always in
  ///     it.
  init(_ rows: [Row], limit: Int, characters: Int) {
    let fitting = min(limit, rows.map { ((), $0.characters) }.fittingCount(characters))
    guard fitting < rows.count else {
      (count, isWithinTransaction) = (rows.count, false)
      return
    }
    let next = rows[fitting].transaction
    // A transaction beyond the page begins the next one. A larger one than a page is divided.
    let whole = rows[..<fitting].prefix { $0.transaction != next }.count
    isWithinTransaction = whole == 0
    count = whole == 0 ? fitting : whole
  }
}
