import FerryPersistence
import FerryProtocol
import FerrySyncClient
import Foundation

/// A transaction of a replica cannot hold so many writes.
struct TooManyWrites: Error {}

extension Error {
  /// True if a transaction of a replica cannot hold so many writes.
  var isTooManyWrites: Bool {
    switch self as any Error {
    case let error as DatabaseError: error.isTooManyWrites
    case ReplicaError.database(_, code: DatabaseError.tooManyWritesCode): true
    default: self is TooManyWrites
    }
  }
}

/// A captured write that failed in the replica.
struct FailedWrite: Sendable {
  var write: CapturedWrite
  var reason: String
  /// True if another write may be needed before it.
  var mayWait: Bool
  var isUnique = false
  /// True if it may succeed after another write.
  var canRetry = false
  /// The key of the row with the write's unique value, if this is the reason.
  var holder: [String?]?
}

/// An application of captured writes to the replica, in a transaction of it. A failed write stops
/// no other one: the row stays in PostgreSQL as written by the program, and is recorded as unsent.
struct MirrorTaking {
  let file: MirrorFile
  let database: Database
  /// Sets how many milliseconds ago the next writes were made, and why they overrule devices.
  var marks: WriteMarks?
  /// The numbers of records in mapped tables.
  var numbers: MirrorNumbers?
  /// Returns how many milliseconds ago a write was made.
  var age: (CapturedWrite) -> Int64 = \.age
  /// The rows with refused operations.
  var refused = RefusedRows()

  private var writer: MirrorRowWriter { MirrorRowWriter(file: file, database: database) }

  /// The number of delays of a write of a split transaction.
  private static let triesMax: Int64 = 5
  /// The number of tries of writes that need others of the same step.
  private static let passesMax = 64

  /// Applies captured writes. In a part of a transaction, a failed one waits for the next part.
  ///
  /// - Parameters:
  ///   - returns: writes before them: records of devices that give way.
  ///   - checksEach: whether foreign keys are checked after each write instead of at the end.
  /// - Returns: The failed writes.
  /// - Throws: ``TooManyWrites``.
  func apply(
    _ captured: CapturedWrites, after returns: [CapturedWrite] = [], checksEach: Bool = false
  ) throws -> [FailedWrite] {
    let checksEach = checksEach || captured.isPart
    let devices = try devicesToDelete(captured.writes)
    if !checksEach { try database.execute("PRAGMA defer_foreign_keys = ON") }
    let writes = captured.transactions.flatMap { parentsLast($0) }.separatingRetries
    var failed = try applyInOrder(returns + writes, captured.isPart)
    // Then the writes that need them fail as well.
    failed.removeAll { $0.write.id == 0 }
    if captured.isPart {
      for write in captured.writes where file.isParentRekey(write) && write.tries < Self.triesMax {
        // The former record goes at the end.
        try postpone(write)
      }
      failed = try postpone(failed)
    } else if !failed.isEmpty {
      let writes = CapturedWrites(writes: failed.map(\.write)).transactions
      failed = try writes.flatMap { try applyExchanged($0.writes, failed) }
    }
    try conclude(captured, failed)
    try recordDropped(devices)
    return failed
  }

  /// Returns the devices' records of mapped tables with the numbers of deleted rows.
  private func devicesToDelete(
    _ writes: [CapturedWrite]
  ) throws -> [(table: MirrorTable, records: [NumberedRow])] {
    guard let numbers else { return [] }
    let records = MirrorRecords(file.plan, database.connection)
    return try file.plan.tables.filter(\.isMapped).compactMap { table in
      let keys = writes.filter { Name($0.table) == table.name }.compactMap { write in
        write.kind == .rekey ? write.former : write.isDelete ? write.key : nil
      }
      guard let derived = numbers.keys(table.name)?.derived else { return nil }
      let found = try records.devices(keys, in: table, derived)
      return found.isEmpty ? nil : (table, found)
    }
  }

  /// Records devices' records without a row: PostgreSQL forgets their numbers with these writes.
  private func recordDropped(
    _ devices: [(table: MirrorTable, records: [NumberedRow])]
  ) throws {
    let records = MirrorRecords(file.plan, database.connection)
    for (table, rows) in devices {
      for row in rows where try records.record(of: row.number, in: table.name) != row.record {
        try database.execute(
          "INSERT OR IGNORE INTO \"mirror.dropped\" VALUES (?, ?)",
          [.text(table.name.text), .text(row.record)])
      }
    }
  }

  /// Delays a write too many for one transaction: other writes come before it. Returns it after too
  /// many delays.
  func postpone(_ captured: CapturedWrites) throws -> [FailedWrite] {
    let failed = try postpone(
      captured.writes.map {
        FailedWrite(
          write: $0, reason: "it changes more records than a transaction may", mayWait: true)
      })
    try conclude(captured, failed)
    return failed
  }

  /// Delays failed writes if they may wait, and returns the others.
  private func postpone(_ failed: [FailedWrite]) throws -> [FailedWrite] {
    try failed.filter { failure in
      guard failure.mayWait, failure.write.tries < Self.triesMax else { return true }
      try postpone(failure.write)
      return false
    }
  }

  private func postpone(_ write: CapturedWrite) throws {
    try database.execute(
      "INSERT OR IGNORE INTO \"mirror.later\" VALUES (?)", [.integer(write.id)])
  }

  /// Records the applied writes, and the rows missing in the space.
  private func conclude(
    _ captured: CapturedWrites, _ failed: [FailedWrite]
  ) throws {
    try recordUnsent(failed, among: captured.writes)
    try file.recordRead(captured.read, database)
    // PostgreSQL stores it with the end of these writes, and so recognises a file without them.
    _ = try file.beginTurn(database)
  }

  /// Records rows that stay as written by programs, unless a later write has brought them.
  private func recordUnsent(
    _ failed: [FailedWrite], among writes: [CapturedWrite]
  ) throws {
    if try !database.query("SELECT 1 FROM \"mirror.unsent\" LIMIT 1").isEmpty {
      // An earlier part of the writes has recorded them.
      for write in writes {
        // An update brings some columns of the row; the space may lack others.
        let action =
          write.kind == .update
          ? "UPDATE \"mirror.unsent\" SET retry = 1" : "DELETE FROM \"mirror.unsent\""
        try database.execute(
          single: "\(action) WHERE tab = ? AND key = ?",
          [.text(write.table), .text(try Self.text(of: write.key))])
      }
    }
    if failed.isEmpty { return }
    // The last whole write of each row, or the delete.
    let whole = writes.filter { $0.kind != .update }
    let last = Dictionary(whole.map { ([$0.table] + $0.key, $0.id) }, uniquingKeysWith: max)
    let lastOfAll = Dictionary(writes.map { ([$0.table] + $0.key, $0.id) }, uniquingKeysWith: max)
    for failure in failed {
      let write = failure.write
      guard let table = file.plan.table(write.table) else { continue }
      if write.kind == .rekey, last[[write.table] + write.former] == nil {
        try recordUnsent(failure, write.former, isGone: true, canRetry: failure.canRetry)
      }
      guard last[[write.table] + write.key, default: 0] <= write.id else { continue }
      try UnsentChanges(database: database).record(write, of: table, refused)
      try recordUnsent(
        failure, write.key, isGone: write.isDelete,
        canRetry: failure.canRetry || lastOfAll[[write.table] + write.key] != write.id)
    }
  }

  private func recordUnsent(
    _ failure: FailedWrite, _ key: [String?], isGone: Bool, canRetry: Bool
  ) throws {
    try database.execute(
      "INSERT OR REPLACE INTO \"mirror.unsent\" VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        .text(failure.write.table), .text(try Self.text(of: key)), .text(failure.reason),
        .integer(canRetry ? 1 : 0), .integer(isGone ? 1 : 0),
        try failure.holder.map { .text(try Self.text(of: $0)) } ?? .null,
        failure.write.reason.map { .text($0) } ?? .null,
      ])
  }

  static func text(of key: [String?]) throws -> String {
    String(decoding: try JSONEncoder().encode(key), as: UTF8.self)
  }

  /// Returns the writes of a transaction, with the former records of parents deleted at its end, or
  /// after enough delays. A device deletes its existing children along with a parent: they need the
  /// new one before.
  private func parentsLast(_ captured: CapturedWrites) -> [CapturedWrite] {
    // Delayed ones are read last.
    let writes = captured.writes.sorted { $0.id < $1.id }
    guard writes.contains(where: file.isParentRekey) else { return writes }
    var former: [CapturedWrite] = []
    for write in writes where write.kind != .delete {
      // The key has a row again.
      former.removeAll { $0.table == write.table && $0.key == write.key }
      guard file.isParentRekey(write), !captured.isPart || write.tries >= Self.triesMax else {
        continue
      }
      var delete = write
      (delete.kind, delete.key, delete.former) = (.delete, write.former, write.key)
      former.append(delete)
    }
    return writes + former
  }

  /// Applies writes as long as this helps: a write may need a later one, such as its parent's. The
  /// writes to a row stay in order.
  private func applyInOrder(
    _ writes: [CapturedWrite], _ isPart: Bool
  ) throws -> [FailedWrite] {
    var left = writes
    var failed: [FailedWrite] = []
    for _ in 0..<Self.passesMax {
      failed = try pass(left, isPart, keepsOrder: true)
      if failed.isEmpty { return failed }
      let isStuck = failed.count == left.count
      left = failed.map(\.write)
      if isStuck { break }
    }
    return isPart ? failed : try pass(left, isPart, keepsOrder: false)
  }

  private func pass(
    _ writes: [CapturedWrite], _ isPart: Bool, keepsOrder: Bool
  ) throws -> [FailedWrite] {
    var failed: [FailedWrite] = []
    var waiting: Set<[String?]> = []
    var isQuiet = false
    for write in writes {
      if try changesOneRow(write) != isQuiet {
        isQuiet.toggle()
        try file.setQuiet(isQuiet, database)
      }
      if keepsOrder, !waiting.isEmpty, write.rows.contains(where: waiting.contains) {
        failed.append(
          FailedWrite(
            write: write, reason: "a write before it failed", mayWait: true, canRetry: true))
        waiting.formUnion(write.rows)
        continue
      }
      guard let failure = try failure(of: write, isPart) else { continue }
      failed.append(failure)
      if failure.mayWait { waiting.formUnion(write.rows) }
    }
    if isQuiet { try file.setQuiet(false, database) }
    return failed
  }

  /// Returns `true` if a write changes the values of one row, which PostgreSQL has already. The
  /// others may change further rows of the replica.
  private func changesOneRow(_ write: CapturedWrite) throws -> Bool {
    guard [.slice, .insert, .update, .answer].contains(write.kind), !write.isDelete else {
      return false
    }
    guard let table = file.plan.table(write.table),
      write.names.contains(where: { table.followed.contains(Name($0)) })
    else { return true }
    // Other rows may follow those values. They cannot follow a new row.
    guard write.kind != .update, let key = try? table.values(ofKey: write.key) else { return false }
    return try !writer.has(key, table)
  }

  private func failure(
    of write: CapturedWrite, _ isPart: Bool
  ) throws -> FailedWrite? {
    if let failure = refused.failure(of: write) { return failure }
    do {
      // An answer is newer than the row that it answers.
      marks?.age = write.kind == .answer ? 0 : age(write)
      marks?.reason = write.reason
      let changes = UnsentChanges(database: database)
      if try writer.apply(write, making: changes.changes(of: write, refused)) || !isPart {
        try file.recordReplaced(by: write, refused, database)
        try changes.forget(after: write)
        return nil
      }
      return FailedWrite(
        write: write, reason: "there is no such record", mayWait: true, canRetry: true)
    } catch let error as DatabaseError {
      if error.isTooManyWrites { throw TooManyWrites() }
      // A full disk is no fault of the write, and SQLite may have ended the transaction.
      guard error.concernsRow, database.connection.isInTransaction else { throw error }
      let isUnique = error.code == 2_067
      let holder = isUnique ? try writer.holder(of: write) : nil
      return FailedWrite(
        write: write, reason: file.reason(error, write, holder: holder),
        mayWait: error.isConstraint,
        isUnique: isUnique, canRetry: error.isConstraint && holder == nil, holder: holder)
    } catch let error as MirrorFault {
      return FailedWrite(
        write: write, reason: error.description, mayWait: isPart && error == .deleted,
        canRetry: error == .deleted)
    }
  }

  // MARK: Exchanged unique values

  /// Makes the failed updates of one transaction again, with their unique columns emptied before:
  /// PostgreSQL checks unique keys at commit, and so rows may exchange values.
  private func applyExchanged(
    _ writes: [CapturedWrite], _ failed: [FailedWrite]
  ) throws -> [FailedWrite] {
    let ids = Set(writes.map(\.id))
    let failed = failed.filter { ids.contains($0.write.id) }
    guard failed.count > 1, failed.contains(where: \.isUnique) else { return failed }
    try database.connection.execute("SAVEPOINT mirror_exchange")
    do {
      let whole = writes.map(\.asWhole)
      for failure in failed where failure.isUnique { try writer.empty(failure.write.asWhole) }
      guard try applyInOrder(whole, false).isEmpty else { throw MirrorFault.exchange }
      try database.connection.execute("RELEASE mirror_exchange")
      return []
    } catch let error
      where error is MirrorFault || (error as? DatabaseError)?.concernsRow == true
    {
      try database.connection.execute("ROLLBACK TO mirror_exchange; RELEASE mirror_exchange")
      return failed
    }
  }
}

extension MirrorFile {
  /// Returns the file's writes that PostgreSQL may still store.
  func read(_ database: Database) throws -> ReadWrites {
    var found = ReadWrites(turn: try turn(database), ended: try ended(database))
    for row in try database.query("SELECT xid, tries, id FROM \"mirror.read\"") {
      guard case .text(let xid) = row["xid"], case .integer(let tries) = row["tries"],
        case .integer(let id) = row["id"]
      else { continue }
      found.marks.append((xid, tries, id))
    }
    for row in try database.query("SELECT id FROM \"mirror.later\"") {
      if case .integer(let id) = row["id"] { found.later.append(id) }
    }
    for row in try database.query("SELECT * FROM \"mirror.unsent\"") {
      guard case .text(let table) = row["tab"], let key = try Self.key(row["key"]),
        case .text(let reason) = row["reason"]
      else { continue }
      var unsent = UnsentRow(
        table: table, key: key, reason: reason, canRetry: row["retry"] == .integer(1),
        isGone: row["gone"] == .integer(1), holder: try Self.key(row["holder"]))
      if case .text(let answer) = row["answer"] { unsent.answer = answer }
      found.unsent.append(unsent)
    }
    for row in try database.query("SELECT tab, record FROM \"mirror.dropped\"") {
      guard case .text(let table) = row["tab"], case .text(let record) = row["record"] else {
        continue
      }
      found.dropped[Name(table), default: []].append(record)
    }
    return found
  }

  private static func key(_ value: Value) throws -> [String?]? {
    guard case .text(let text) = value else { return nil }
    return try JSONDecoder().decode([String?].self, from: Data(text.utf8))
  }

  func forgetRead(_ database: Database) throws {
    try database.execute(
      """
      DELETE FROM "mirror.read"; DELETE FROM "mirror.later"; DELETE FROM "mirror.unsent";
      DELETE FROM "mirror.dropped"
      """)
  }

  fileprivate func recordRead(_ read: [String: CapturedWrite], _ database: Database) throws {
    for (xid, last) in read {
      try database.execute(
        "INSERT OR REPLACE INTO \"mirror.read\" VALUES (?, ?, ?)",
        [.text(xid), .integer(last.tries), .integer(last.id)])
    }
  }

  /// Returns `true` if a row that others may refer to gets another key.
  func isParentRekey(_ write: CapturedWrite) -> Bool {
    write.kind == .rekey
      && plan.tables.contains { $0.references.contains { $0.table.text == write.table } }
  }
}
