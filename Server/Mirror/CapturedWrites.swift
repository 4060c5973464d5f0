import FerryPostgres
import FerryProtocol

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
    /// A row of an adopted table after a step: PostgreSQL has refused the space's row, or has made
    /// another one of it.
    case answer = "A"
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
  /// The values before an update, the key before a change of the key, or the values answered by
  /// PostgreSQL.
  var former: [String?] = []
  /// True if a step has overwritten an update in the table since: the table gets the row again.
  var isOverwritten = false
  /// True if a whole row is that of an unsent row to send again.
  var isRetry = false
  /// True if an answer is that the table has no such row.
  var isAbsent = false
  /// True if an answer is about a row deleted in the space.
  var answersDelete = false
  /// The reason why the space's row is changed, for its author.
  var reason: String?

  /// The time since the program's write, in milliseconds. The clocks of PostgreSQL's machine and of
  /// this one may differ.
  package var age: Int64 {
    guard let readAt else { return ageAtReading }
    let since = readAt.duration(to: .now) / .milliseconds(1)
    return ageAtReading + Int64(since)
  }

  /// True if the table has no such row after the write.
  var isDelete: Bool { kind == .delete || kind == .answer && isAbsent }

  /// An answer with values as a write of the whole row, whatever the space has by now.
  var asWhole: CapturedWrite {
    guard kind == .answer, !isAbsent, !answersDelete else { return self }
    var write = self
    (write.kind, write.former) = (.slice, [])
    return write
  }

  /// Returns the write without the columns that do not travel.
  func limited(to travels: (String) -> Bool) -> CapturedWrite {
    let places = names.indices.filter { travels(names[$0]) }
    guard places.count < names.count else { return self }
    var write = self
    write.names = places.map { names[$0] }
    if values.count == names.count { write.values = places.map { values[$0] } }
    if former.count == names.count, kind != .rekey { write.former = places.map { former[$0] } }
    return write
  }

  /// The rows changed by the write.
  var rows: [[String?]] {
    [[table] + key] + (kind == .rekey ? [[table] + former] : [])
  }
}

extension CapturedWrite {
  /// Reads a row of the ledger; `nil` if the kind of the write is unknown.
  ///
  /// - Parameters:
  ///   - now: PostgreSQL's clock at the reading, in milliseconds since 1970.
  ///   - readAt: the same moment by this process's clock.
  init?(_ row: PostgresRow, at now: Int64, _ readAt: ContinuousClock.Instant) throws {
    let isOverwritten = try row.text(3) == OverwriteSQL.kind
    guard let kind = isOverwritten ? .update : Kind(rawValue: try row.text(3)) else { return nil }
    self.init(
      id: try row.int8(0), tries: try row.int8(8), transaction: try row.text(1),
      ageAtReading: max(0, now - (try row.int8(9))), readAt: readAt, table: try row.text(2),
      kind: kind, key: try row.array(4, of: String.self))
    self.isOverwritten = isOverwritten
    reason = try row.ifPresent(10, as: String.self)
    if kind == .delete { return }
    // A row that no device can hold has the reason here.
    names = try row.array(5, of: String.self).compactMap(\.self)
    isAbsent = row.isNull(6)
    if !isAbsent { values = try row.array(6, of: String.self) }
    answersDelete = kind == .answer && row.isNull(7)
    isRetry = kind == .slice && !row.isNull(7)
    if !answersDelete, [.update, .rekey, .answer].contains(kind) {
      former = try row.array(7, of: String.self)
    }
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
  /// Devices' records of mapped tables deleted by programs.
  var dropped: [Name: [String]] = [:]

  var isEmpty: Bool { marks.isEmpty }
}
