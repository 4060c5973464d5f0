/// A write of a program to a mirrored table, as PostgreSQL has recorded it.
package struct CapturedWrite: Sendable, Equatable {
  enum Kind: String, Sendable {
    case insert = "I"
    case update = "U"
    case delete = "D"
    /// A row gets another key.
    case rekey = "K"
    /// A row that was there when its table was adopted, as an insert.
    case slice = "S"
    /// A row of an adopted table that no device can hold.
    case unfit = "X"
  }

  var id: Int64
  /// How often it has been put off: it waits for a later write of its transaction.
  var tries: Int64
  package var transaction: String
  /// How long before the reading the program wrote, by PostgreSQL's clock, in milliseconds.
  var ageAtReading: Int64 = 0
  /// When it was read; `nil` for a write that was not read from PostgreSQL.
  var readAt: ContinuousClock.Instant?
  var table: String
  var kind: Kind
  var key: [String?]
  /// The written columns.
  var names: [String] = []
  var values: [String?] = []
  /// The values before an update, or the key before a change of the key.
  var former: [String?] = []

  /// How long ago the program wrote, in milliseconds. The clocks of PostgreSQL's machine and of this one may
  /// differ.
  package var age: Int64 {
    guard let readAt else { return ageAtReading }
    let since = readAt.duration(to: .now) / .milliseconds(1)
    return ageAtReading + Int64(since)
  }

  /// The rows that it writes to.
  var rows: [[String?]] {
    [[table] + key] + (kind == .rekey ? [[table] + former] : [])
  }
}

/// Some captured writes in the order of their transactions.
struct CapturedWrites: Sendable {
  var writes: [CapturedWrite] = []
  /// Whether they are one transaction without its end.
  var isPart = false

  /// The last write of each transaction, in the order in which they were read.
  var read: [String: CapturedWrite] {
    Dictionary(writes.map { ($0.transaction, $0) }) { $1 }
  }

  /// Each transaction for itself.
  var transactions: [CapturedWrites] {
    guard !isPart else { return [self] }
    var found: [CapturedWrites] = []
    for write in writes {
      if found.last?.writes.last?.transaction != write.transaction {
        found.append(CapturedWrites())
      }
      found[found.count - 1].writes.append(write)
    }
    return found
  }

  /// About half of them: whole transactions, or a part of the only one.
  var half: CapturedWrites? {
    guard writes.count > 1 else { return nil }
    let middle = writes.count / 2
    if let first = writes.first, let last = writes.last, first.transaction != last.transaction {
      var end = middle
      while end > 0, writes[end - 1].transaction == writes[end].transaction { end -= 1 }
      if end == 0 { end = writes.firstIndex { $0.transaction != first.transaction } ?? middle }
      return CapturedWrites(writes: Array(writes[..<end]))
    }
    return CapturedWrites(writes: Array(writes[..<middle]), isPart: true)
  }
}

/// Captured writes that a mirror's file has taken, and that PostgreSQL may still keep.
struct ReadWrites: Sendable {
  /// The turn of the file that has taken them.
  var turn: Int64
  /// The last step of that file that has ended.
  var ended: Int64 = 0
  /// The last one of each transaction.
  var marks: [(transaction: String, tries: Int64, id: Int64)] = []
  /// Those before them that were put off.
  var later: [Int64] = []
  /// Rows that the replica refused.
  var unsent: [UnsentRow] = []

  var isEmpty: Bool { marks.isEmpty }
}
