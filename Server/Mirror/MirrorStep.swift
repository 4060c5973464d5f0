import FerryCryptography
import FerryPlatform
import FerryPostgres
import FerryProtocol

/// A row of the replica that the table in PostgreSQL may not have.
struct MirrorRow: Sendable, Equatable {
  /// The position of the table in the plan.
  var table: Int
  var key: [Value]
  /// The values of the other columns; `nil` if the row is deleted.
  var values: [Value]?
}

/// A program has written to a row right before a step changes it. The program's write comes first.
struct WrittenMeanwhile: Error {}

/// A transfer of the replica's rows into the tables of PostgreSQL, within one transaction; all
/// calls block.
struct MirrorStep {
  /// Rows of one statement.
  static let batchMax = 500
  /// Bytes of one statement: PostgreSQL takes a GiB at most.
  static let batchBytesMax = 8 << 20

  /// A row as PostgreSQL reads it.
  private struct Pending {
    var key: [String?]
    /// The values of the other columns; `nil` if the row is deleted.
    var texts: [String?]?
  }

  let connection: PostgresConnection
  let ledger: MirrorLedger
  let sql: [MirrorSQL]
  /// True if each row is tried alone, so a refused row stops no other.
  let isCareful: Bool
  private let hasDeferred: Bool
  private let hasUnsent: Bool
  /// Rows of one statement: all of them are deleted, or none.
  private var batch: [Pending] = []
  private var batchBytes = 0
  private var table = -1
  private var isDelete = false
  /// Rows refused in this step.
  private var refused: [(row: MirrorRow, error: PostgresError)] = []
  /// Rows deferred in this step.
  private var deferred: [(table: Int, key: [String?])] = []
  /// Rows written so far.
  private(set) var count = 0
  /// True after the capture of rows to change in the space: they are an effect of the step.
  private(set) var hasCaptured = false

  init(
    _ connection: PostgresConnection, _ ledger: MirrorLedger, _ sql: [MirrorSQL], isCareful: Bool
  ) throws {
    (self.connection, self.ledger, self.sql) = (connection, ledger, sql)
    self.isCareful = isCareful
    try connection.execute("SELECT set_config('ferry.mirror', '\(ledger.number)', true)")
    try connection.execute("SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0")
    if isCareful { try connection.execute("SET CONSTRAINTS ALL IMMEDIATE") }
    if sql.contains(where: { $0.table.adoption?.condition != nil }) {
      // A condition means the same as in the triggers. Otherwise programs' triggers have their
      // usual path.
      try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    }
    hasDeferred = try ledger.hasDeferred(connection)
    hasUnsent = try ledger.hasUnsent(connection)
  }

  /// Adds a row; the rows of a table come one after another. The statements have the order of the
  /// rows: a deleted parent takes along all remaining children.
  mutating func add(_ row: MirrorRow) throws {
    count += 1
    if row.table != table || (row.values == nil) != isDelete {
      try flush()
      (table, isDelete) = (row.table, row.values == nil)
    }
    let definition = sql[row.table].table
    let key: [String?]
    do throws(MirrorFault) {
      key = try definition.texts(ofKey: row.key)
    } catch {
      // The key as the space has it.
      let key = row.key.map(\.keyText)
      // No row of PostgreSQL can have it.
      guard row.values != nil else {
        return try ledger.resolve(definition.name, key, canRetry: false, connection)
      }
      return try ledger.defer(
        definition.name, key, error.description, canRetry: false, connection)
    }
    let texts: [String?]
    do throws(MirrorFault) {
      texts = try definition.texts(ofColumns: row.values ?? [])
      if row.values != nil { try definition.checkSpace(ofKey: key) }
    } catch {
      return try postpone(row, key, error.description)
    }
    if hasDeferred { try ledger.resolve(definition.name, key, canRetry: true, connection) }
    if isCareful { return try tryAlone(row, key, texts) }
    append(row, key, texts)
    if batch.count == Self.batchMax || batchBytes > Self.batchBytesMax { try flush() }
  }

  private mutating func postpone(_ row: MirrorRow, _ key: [String?], _ reason: String) throws {
    try ledger.defer(sql[row.table].table.name, key, reason, canRetry: true, connection)
    deferred.append((row.table, key))
  }

  private mutating func append(_ row: MirrorRow, _ key: [String?], _ texts: [String?]) {
    batch.append(Pending(key: key, texts: row.values == nil ? nil : texts))
    batchBytes += texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
  }

  private mutating func flush() throws {
    let rows = batch
    (batch, batchBytes) = ([], 0)
    guard let first = rows.first else { return }
    let (sql, keys, isDelete) = (sql[table], parameters(rows.map(\.key)), first.texts == nil)
    // First the locks, then the look at captured writes: it has to see those before the locks.
    let found = try connection.pipeline {
      $0.add(.once(sql.lock), keys)
      $0.add(.once(sql.isWritten), keys)
    }
    if found.last?.isEmpty == false { throw WrittenMeanwhile() }
    _ = try connection.pipeline {
      $0.add(.once(sql.begin(isDelete: isDelete)))
      if isDelete {
        $0.add(.once(sql.delete), keys)
        $0.add(.once(sql.forget(areDeleted: true)), keys)
        if hasUnsent { $0.add(.once(sql.forgetGone), keys) }
        return
      }
      let values = parameters(rows.map { $0.key + ($0.texts ?? []) })
      if sql.table.adoption == nil {
        $0.add(.once(sql.upsert), values)
      } else {
        if let update = sql.update { $0.add(.once(update), values) }
        $0.add(.once(sql.insert), values)
      }
      // A row refused before may have been deleted with the former parent.
      if isCareful { $0.add(.once(sql.forget(areDeleted: false)), keys) }
    }
    guard !isDelete, let outside = sql.captureOutside else { return }
    if try !connection.query(.once(outside), keys).isEmpty { hasCaptured = true }
  }

  /// Returns the columns of rows.
  private func parameters(_ rows: [[String?]]) -> PostgresParameters {
    var parameters = PostgresParameters()
    for column in rows[0].indices {
      parameters.append(PostgresArray<String>(rows.map { $0[column] }))
    }
    return parameters
  }

  // MARK: One by one

  private mutating func tryAlone(_ row: MirrorRow, _ key: [String?], _ texts: [String?]) throws {
    append(row, key, texts)
    try connection.execute("SAVEPOINT ferry_row")
    do {
      try flush()
      try connection.execute("RELEASE SAVEPOINT ferry_row")
    } catch let error as PostgresError where error.isAboutRow {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_row; RELEASE SAVEPOINT ferry_row")
      refused.append((row, error))
    }
  }

  /// The number of further attempts for refused rows.
  private static let passesMax = 16

  /// Writes the last rows. Refused rows are tried again as long as this helps: a row may need
  /// another one. Every other pass begins with the last row, so a chain needs no pass for each.
  /// Deletes stay behind the other rows.
  mutating func finish() throws {
    try flush()
    for _ in 0..<Self.passesMax where !refused.isEmpty {
      let left = refused
      refused = []
      let rows = left.reversed().map(\.row)
      for row in rows where row.values != nil { try add(row) }
      for row in rows where row.values == nil { try add(row) }
      if refused.count == left.count { break }
    }
    try retryTogether()
    for (row, error) in refused {
      let definition = sql[row.table].table
      let key = try definition.texts(ofKey: row.key)
      try postpone(row, key, error.message)
    }
    refused = []
    for (table, key) in deferred {
      // The space keeps the row, although the former row may be gone with a parent.
      _ = try connection.query(
        .once(sql[table].forget(areDeleted: true)), parameters([key]))
    }
    if try ledger.hasCapturedNow(connection) { hasCaptured = true }
  }

  /// Tries refused rows together: some need each other, as two that exchange a unique value do. A
  /// company's unique keys are seldom checked at commit, so such rows free theirs first.
  private mutating func retryTogether() throws {
    for vacates in [false, true] {
      let group = refused.filter(\.error.isAboutOthers)
      guard group.count > 1 else { return }
      try connection.execute("SAVEPOINT ferry_group; SET CONSTRAINTS ALL DEFERRED")
      do {
        if vacates { for (row, _) in group { try vacate(row) } }
        for (row, _) in group {
          let definition = sql[row.table].table
          table = row.table
          append(
            row, try definition.texts(ofKey: row.key),
            try definition.texts(ofColumns: row.values ?? []))
          try flush()
        }
        try connection.execute("SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT ferry_group")
        refused.removeAll { $0.error.isAboutOthers }
      } catch let error as PostgresError where error.isAboutRow {
        (batch, batchBytes) = ([], 0)
        try connection.execute("ROLLBACK TO SAVEPOINT ferry_group; RELEASE SAVEPOINT ferry_group")
      }
    }
  }

  private func vacate(_ row: MirrorRow) throws {
    guard row.values != nil, let vacate = sql[row.table].vacate else { return }
    _ = try connection.query(.once(sql[row.table].begin(isDelete: false)))
    _ = try connection.query(
      .once(vacate), parameters([try sql[row.table].table.texts(ofKey: row.key)]))
  }
}

extension PostgresError {
  /// True if another row is the reason: a foreign key or a unique key is violated.
  fileprivate var isAboutOthers: Bool { ["23503", "23505"].contains(sqlState) }
}

extension PostgresError {
  /// True if a row's values are the reason: a data exception, a violated constraint, a size that an
  /// index cannot hold, or an error in a trigger.
  var isAboutRow: Bool {
    guard kind == .server, let sqlState else { return false }
    if ["22", "23", "54", "P0"].contains(where: { sqlState.begins(with: $0) }) { return true }
    // A trigger may raise an error of any class. The classes below concern the connection, the
    // transaction, locks, resources and the server, and so every row.
    return context != nil && sqlState != "55P03"
      && !["08", "25", "40", "53", "57", "58", "XX"].contains(where: { sqlState.begins(with: $0) })
  }
}

/// Fills the table of a comparison with the rows of a replica; all calls block.
struct MirrorCopy {
  private let connection: PostgresConnection
  private let sql: MirrorSQL

  init(_ connection: PostgresConnection, _ sql: MirrorSQL) {
    (self.connection, self.sql) = (connection, sql)
  }

  /// Adds the rows that `each` passes to the argument. Rows that PostgreSQL cannot hold are left
  /// out: they are deferred.
  func fill(_ each: ((MirrorRow) throws -> Void) throws -> Void) throws {
    var batch: [[String?]] = []
    var bytes = 0
    try each { row in
      guard let key = try? sql.table.texts(ofKey: row.key),
        let texts = try? sql.table.texts(ofColumns: row.values ?? [])
      else { return }
      batch.append(key + texts)
      bytes += texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
      guard batch.count == MirrorStep.batchMax || bytes > MirrorStep.batchBytesMax else { return }
      try add(batch)
      (batch, bytes) = ([], 0)
    }
    try add(batch)
  }

  /// Adds rows; if one of them is refused, each half for itself.
  private func add(_ rows: [[String?]]) throws {
    guard !rows.isEmpty else { return }
    var parameters = PostgresParameters()
    for column in sql.table.all.indices {
      parameters.append(PostgresArray<String>(rows.map { $0[column] }))
    }
    try connection.execute("SAVEPOINT ferry_copy")
    do {
      try send(parameters)
      try connection.execute("RELEASE SAVEPOINT ferry_copy")
    } catch let error as PostgresError where error.isAboutRow {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_copy; RELEASE SAVEPOINT ferry_copy")
      guard rows.count > 1 else { return }
      try add(Array(rows[..<(rows.count / 2)]))
      try add(Array(rows[(rows.count / 2)...]))
    }
  }

  private func send(_ parameters: PostgresParameters) throws {
    _ = try connection.query(.once(sql.fillCopy), parameters)
  }
}

extension MirrorTable {
  private static func isCanonicalUUID(_ text: String) -> Bool {
    // Runs for each value.
    text.utf8.count == 36
      && text.utf8.enumerated().allSatisfy { place, byte in
        [8, 13, 18, 23].contains(place)
          ? byte == UInt8(ascii: "-")
          : (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
      }
  }

  /// Returns the texts of a key for PostgreSQL to read.
  func texts(ofKey values: [Value]) throws(MirrorFault) -> [String?] {
    var texts: [String?] = []
    for (column, value) in zip(key, values) {
      let text = try column.text(of: value)
      if column.type == .uuid, let text, !Self.isCanonicalUUID(text) {
        throw MirrorFault(
          description: "column \(column.name): PostgreSQL writes the UUID “\(text.prefix(40))” in "
            + "another form, and so as another key")
      }
      texts.append(text)
    }
    return texts
  }

  /// - Throws: ``MirrorFault`` if a key belongs to another space.
  func checkSpace(ofKey texts: [String?]) throws(MirrorFault) {
    guard let space = adoption?.space else { return }
    for (column, text) in zip(key, texts) where column.name == Name(space.name) {
      guard text.map({ Name($0) }) != Name(space.value) else { continue }
      throw MirrorFault(
        description: "column \(column.name) names another space: \(text ?? "NULL")")
    }
  }

  /// Returns the texts of the columns beside the key for PostgreSQL to read.
  func texts(ofColumns values: [Value]) throws(MirrorFault) -> [String?] {
    var texts: [String?] = []
    for (column, value) in zip(columns, values) { texts.append(try column.text(of: value)) }
    return texts
  }

  /// Returns the values of a key written by PostgreSQL.
  func values(ofKey texts: [String?]) throws(MirrorFault) -> [Value] {
    var values: [Value] = []
    for (column, text) in zip(key, texts) { values.append(try column.value(of: text)) }
    return values
  }
}

extension Value {
  /// The value of a key as a text, for people and for another try.
  fileprivate var keyText: String? {
    switch self {
    case .null: return nil
    case .integer(let number): return String(number)
    case .real(let number): return "\(number)"
    case .text(let text): return text
    case .blob(let bytes): return Hexadecimal.text(bytes)
    }
  }
}
