/// A write of a program to a mirrored table, as PostgreSQL has recorded it.
package struct CapturedWrite: Sendable, Equatable {
  enum Kind: String, Sendable {
    case insert = "I"
    case update = "U"
    case delete = "D"
    /// A row gets another key.
    case rekey = "K"
    /// A row older than the adoption of the table, as an insert.
    case slice = "S"
    /// A row of an adopted table that no device can hold.
    case unfit = "X"
  }

  var id: Int64
  /// The number of delays: it waits for a later write of the transaction.
  var tries: Int64
  package var transaction: String
  /// The time from the program's write to the reading, by PostgreSQL's clock, in milliseconds.
  var ageAtReading: Int64 = 0
  /// The time of the read; `nil` for a write not read from PostgreSQL.
  var readAt: ContinuousClock.Instant?
  var table: String
  var kind: Kind
  var key: [String?]
  /// The written columns.
  var names: [String] = []
  var values: [String?] = []
  /// The values before an update, or the key before a change of the key.
  var former: [String?] = []

  /// The time since the program's write, in milliseconds. The clocks of PostgreSQL's machine and of
  /// this one may differ.
  package var age: Int64 {
    guard let readAt else { return ageAtReading }
    let since = readAt.duration(to: .now) / .milliseconds(1)
    return ageAtReading + Int64(since)
  }

  /// The rows changed by the write.
  var rows: [[String?]] {
    [[table] + key] + (kind == .rekey ? [[table] + former] : [])
  }
}

/// Some captured writes in the order of their transactions.
struct CapturedWrites: Sendable {
  var writes: [CapturedWrite] = []
  /// True for one transaction without the end.
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

/// Captured writes applied by a mirror's file, and perhaps still stored in PostgreSQL.
struct ReadWrites: Sendable {
  /// The turn of the file with these writes.
  var turn: Int64
  /// The last ended step of this file.
  var ended: Int64 = 0
  /// The last one of each transaction.
  var marks: [(transaction: String, tries: Int64, id: Int64)] = []
  /// Delayed writes before them.
  var later: [Int64] = []
  /// Rows refused by the replica.
  var unsent: [UnsentRow] = []
  /// Rows refused by the space.
  var refused: [UnsentRow] = []

  var isEmpty: Bool { marks.isEmpty }
}
