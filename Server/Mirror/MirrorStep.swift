import FerryPlatform
import FerryPostgres
import FerryProtocol

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
  private typealias Pending = MirrorTexts

  let connection: PostgresConnection
  let ledger: MirrorLedger
  let sql: [MirrorSQL]
  /// True if refused rows are searched, so one of them stops no other.
  let isCareful: Bool
  /// The numbers of records in mapped tables.
  var numbers: MirrorNumbers?
  /// Returns the owner of a device; `nil` if it is not known.
  var owner: (String) -> String? = { _ in nil }
  /// Waits for captured writes.
  var catchUp: (() throws -> Void)?
  private let hasDeferred: Bool
  private let hasUnsent: Bool
  /// True if unsent rows wait for a change of another record.
  private let hasHeld: Bool
  /// Tables and keys of rows to write although the space has not changed them.
  private let unchanged: Set<[String?]>
  /// The keys of changed rows of each table, if unsent rows may wait for them.
  private var changed: [Int: [[String?]]] = [:]
  /// Rows of one statement: all of them are deleted, or none.
  private var batch: [Pending] = []
  private var batchBytes = 0
  private var table = -1
  private var isDelete = false
  private var device: String?
  /// The value of `ferry.device` in the transaction; `nil` if it is not known.
  private var shownDevice: String?
  /// Rows refused in this step.
  private var refused: [(row: MirrorRow, error: PostgresError)] = []
  /// Rows of adopted tables that PostgreSQL cannot hold, or the mirror's role may not write.
  private var unfit: [RefusedRow] = []
  /// Rows of adopted tables with keys that PostgreSQL cannot hold: the space has to delete them.
  private(set) var unholdable: [RefusedRow] = []
  /// Rows of adopted tables returned to the space as PostgreSQL has them, with the reason.
  private(set) var returned: [DeferredRow] = []
  /// True after a change of a row behind a refused one.
  private var mayHelp = false
  /// Rows deferred in this step.
  private var deferred: [(table: Int, key: [String?])] = []
  /// True after the first statement of the step.
  private var hasWritten = false
  /// Rows written so far.
  private(set) var count = 0
  /// True after the capture of rows to change in the space: they are an effect of the step.
  private(set) var hasCaptured = false

  /// - Parameter space: the name of the space, for programs' triggers.
  init(
    _ connection: PostgresConnection, _ ledger: MirrorLedger, _ sql: [MirrorSQL], space: String,
    unchanged: Set<[String?]>, isCareful: Bool
  ) throws {
    (self.connection, self.ledger, self.sql) = (connection, ledger, sql)
    (self.unchanged, self.isCareful) = (unchanged, isCareful)
    _ = try connection.query(.once(Self.settings), [.text("\(ledger.number)"), .text(space)])
    if isCareful { try connection.execute("SET CONSTRAINTS ALL IMMEDIATE") }
    if sql.contains(where: { $0.table.adoption?.condition != nil }) {
      // A condition means the same as in the triggers. Otherwise programs' triggers have their
      // usual path.
      try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    }
    hasDeferred = try ledger.hasDeferred(connection)
    hasUnsent = try ledger.unsent.hasAny(connection)
    hasHeld = try hasUnsent && ledger.unsent.hasHeld(connection)
  }

  /// Adds a row; the rows of a table come one after another. The statements have the order of the
  /// rows: a deleted parent takes along all remaining children.
  mutating func add(_ row: MirrorRow) throws {
    count += 1
    if row.table != table || (row.values == nil) != isDelete || row.device != device {
      try flush()
      (table, isDelete, device) = (row.table, row.values == nil, row.device)
    }
    let definition = sql[row.table].table
    let key: [String?]
    do throws(MirrorFault) {
      key = try definition.texts(ofKey: row.key)
    } catch {
      // The key as the space has it.
      let key = row.key.map(\.keyText)
      try addChanged(row.table, key)
      // No row of PostgreSQL can have it.
      guard row.values != nil else {
        return try ledger.resolve(definition.name, key, canRetry: false, connection)
      }
      if definition.adoption != nil {
        return unholdable.append(RefusedRow(row: row, reason: error.description))
      }
      return try ledger.defer(
        definition.name, key, error.description, canRetry: false, connection)
    }
    try addChanged(row.table, key)
    let texts: [String?]
    do throws(MirrorFault) {
      try definition.checkRights(isDelete: row.values == nil)
      texts = try definition.texts(ofColumns: row.values ?? [])
      if row.values != nil { try definition.checkSpace(ofKey: key) }
    } catch {
      guard definition.adoption == nil else {
        return unfit.append(RefusedRow(row: row, reason: error.description))
      }
      return try postpone(row, key, error.description)
    }
    batch.append(Self.pending(row, key, texts))
    batchBytes += batch[batch.count - 1].bytes
    if batch.count == Self.batchMax || batchBytes > Self.batchBytesMax { try flush() }
  }

  /// Adds a row to those that may have had a unique value of unsent rows.
  private mutating func addChanged(_ table: Int, _ key: [String?]) throws {
    guard hasHeld, !unchanged.contains([sql[table].table.name.text] + key) else { return }
    changed[table, default: []].append(key.map { $0.map(MirrorLedger.storable) })
    if changed[table]?.count == Self.batchMax { try free(table) }
  }

  private mutating func free(_ table: Int) throws {
    guard let keys = changed.removeValue(forKey: table), !keys.isEmpty else { return }
    _ = try connection.query(.once(step(table).freeHeld), PostgresParameters(columnsOf: keys))
  }

  private mutating func postpone(_ row: MirrorRow, _ key: [String?], _ reason: String) throws {
    try ledger.defer(sql[row.table].table.name, key, reason, canRetry: true, connection)
    deferred.append((row.table, key))
  }

  private func step(_ table: Int) -> StepSQL { StepSQL(sql: sql[table]) }

  private static func pending(
    _ row: MirrorRow, _ key: [String?], _ texts: [String?]
  ) -> Pending {
    Pending(row: row, key: key, texts: row.values == nil ? nil : texts)
  }

  private mutating func flush() throws {
    let rows = batch
    (batch, batchBytes) = ([], 0)
    guard !rows.isEmpty else { return }
    try lock(rows)
    if isCareful { try tryHalves(rows[...]) } else { try write(rows[...]) }
  }

  /// Locks rows until the end of the transaction.
  ///
  /// - Throws: ``WrittenMeanwhile``.
  private func lock(_ rows: [Pending]) throws {
    let (step, keys) = (step(table), PostgresParameters(columnsOf: rows.map(\.key)))
    let definition = step.sql.table
    // First the locks, then the look at captured writes: it has to see those before the locks.
    _ = try connection.pipeline {
      if hasDeferred { $0.add(.once(step.resolve), keys) }
      $0.add(.once(step.lock), keys)
    }
    try catchUp?()
    if try !connection.query(.once(step.isWritten), keys).isEmpty { throw WrittenMeanwhile() }
    guard rows[0].texts != nil, let found = devices(rows[...]) else { return }
    let taken = try found.keys.taken(found.rows, key: definition.key[0].name, connection)
    if !taken.isEmpty { throw NumbersTaken(table: definition.name, records: taken) }
  }

  /// Names the author of the next rows to programs' triggers.
  private static let showDevice = PostgresStatement.once(
    "SELECT set_config('ferry.device', $1, true), set_config('ferry.user', $2, true)")

  /// - Parameter savepoint: the name of a savepoint to undo a refused write.
  /// - Returns: `true` if a row of the table has changed.
  @discardableResult
  private mutating func write(
    _ rows: ArraySlice<Pending>, savepoint: String? = nil
  ) throws -> Bool {
    guard let first = rows.first else { return false }
    let (step, answers) = (step(table), AnswerSQL(sql: sql[table]))
    let (keys, isDelete) = (PostgresParameters(columnsOf: rows.map(\.key)), first.texts == nil)
    var (writes, made): ([Int], Int) = ([], 0)
    let device = first.row.device ?? ""
    let user = MirrorLedger.storable(owner(device) ?? "")
    let isShown = shownDevice == device
    // A failure takes it back.
    shownDevice = nil
    let results = try connection.pipeline {
      if let savepoint { $0.add(.once("SAVEPOINT \(savepoint)")) }
      if !isShown { $0.add(Self.showDevice, [.text(device), .text(user)]) }
      if hasWritten, !isDelete { $0.add(.once(step.forgetOverwritten), keys) }
      $0.add(.once(step.begin(isDelete: isDelete)))
      let parameters =
        isDelete
        ? keys
        : PostgresParameters(
          columnsOf: rows.map { $0.key + ($0.texts ?? []) })
      if isDelete {
        writes.append($0.add(.once(step.own(step.delete)), keys))
        $0.add(.once(step.forget), keys)
        if hasUnsent { $0.add(.once(step.forgetGone), keys) }
      } else {
        if let update = step.update { writes.append($0.add(.once(step.own(update)), parameters)) }
        if let insert = step.insert {
          if let open = step.open { $0.add(.once(open)) }
          writes.append($0.add(.once(step.own(insert)), parameters))
        }
      }
      made = $0.add(.once(step.made(answers.captureMade(isDelete: isDelete))), parameters)
      if let forget = answers.forgetMadeUpdates { $0.add(.once(forget)) }
    }
    if let (keys, rows) = devices(rows) {
      if isDelete {
        try keys.forget(rows.map(\.record), connection)
      } else {
        try keys.place(rows, connection)
      }
    }
    (shownDevice, hasWritten) = (device, true)
    if !results[made].isEmpty { hasCaptured = true }
    return writes.contains { results[$0].affected > 0 }
  }

  /// Returns the rows of devices' records in a mapped table; `nil` if there are none.
  private func devices(
    _ rows: ArraySlice<Pending>
  ) -> (keys: MirrorKeys, rows: [NumberedRow])? {
    guard let table = rows.first.map({ sql[$0.row.table].table }), table.isMapped,
      let keys = numbers?.keys(table.name)
    else { return nil }
    let found = keys.devices(rows.map(\.row))
    return found.isEmpty ? nil : (keys, found)
  }

  // MARK: Refused rows

  /// Writes rows; if one of them is refused, each half for itself.
  private mutating func tryHalves(_ rows: ArraySlice<Pending>) throws {
    guard let first = rows.first else { return }
    do {
      let isChanged = try write(rows, savepoint: "ferry_row")
      try connection.execute("RELEASE SAVEPOINT ferry_row")
      // A row refused before may need one of these.
      if isChanged, !refused.isEmpty { mayHelp = true }
    } catch let error as PostgresError where error.isAboutRow {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_row; RELEASE SAVEPOINT ferry_row")
      guard rows.count > 1 else {
        // A program's row may have the number since.
        if error.sqlState == "23505", devices(rows) != nil { try lock(Array(rows)) }
        return refused.append((first.row, error))
      }
      let middle = rows.startIndex + rows.count / 2
      try tryHalves(rows[..<middle])
      try tryHalves(rows[middle...])
    }
  }

  /// The number of further attempts for refused rows.
  private static let passesMax = 16

  /// Writes the last rows. Refused rows are tried again as long as this helps: a row may need
  /// another one. Every other pass begins with the last row, so a chain needs no pass for each.
  /// Deletes stay behind the other rows.
  mutating func finish() throws {
    try flush()
    for _ in 0..<Self.passesMax where mayHelp {
      let left = refused
      (refused, mayHelp) = ([], false)
      let rows = left.reversed().map(\.row)
      for row in rows where row.values != nil { try add(row) }
      for row in rows where row.values == nil { try add(row) }
      try flush()
    }
    try retryTogether()
    for table in changed.keys.sorted() { try free(table) }
    try answerRefused()
    try deferRefused()
    if try ledger.hasCapturedNow(connection) { hasCaptured = true }
  }

  /// Captures the rows of PostgreSQL in place of refused ones of adopted tables.
  private mutating func answerRefused() throws {
    var rows = unfit
    for (row, error) in refused where sql[row.table].table.adoption != nil {
      rows.append(RefusedRow(row: row, reason: error.message))
    }
    refused.removeAll { sql[$0.row.table].table.adoption != nil }
    unfit = []
    if rows.isEmpty { return }
    let answers = MirrorAnswers(connection: connection, sql: sql)
    for part in answers.parts(of: rows) {
      table = part[0].texts.row.table
      try lock(part.map(\.texts))
      let answered = try answers.capture(part)
      for (texts, reason) in part {
        let row = DeferredRow(table: sql[table].table.name.text, key: texts.key, reason: reason)
        if answered.contains(texts.key) {
          returned.append(row)
        } else {
          try postpone(texts.row, texts.key, reason)
        }
      }
    }
    hasCaptured = true
  }

  private mutating func deferRefused() throws {
    var clashes = MirrorClashes(connection)
    let rows = try refused.map { row, error in
      let definition = sql[row.table].table
      let key = try definition.texts(ofKey: row.key)
      deferred.append((row.table, key))
      let holder = try clashes.holder(of: row, sql[row.table], error)
      return DeferredRow(table: definition.name.text, key: key, reason: holder ?? error.message)
    }
    refused = []
    try ledger.defer(rows, connection)
    // The space keeps the rows, although the former rows may be gone with a parent.
    for (table, rows) in Dictionary(grouping: deferred, by: \.table).sorted(by: { $0.key < $1.key })
    {
      _ = try connection.query(
        .once(step(table).forgetOverwritten), PostgresParameters(columnsOf: rows.map(\.key)))
    }
  }

  /// Tries refused rows together: some need each other, as two that exchange a unique value do. A
  /// company's unique keys are seldom checked at commit, so such rows free theirs first.
  private mutating func retryTogether() throws {
    for vacates in [false, true] {
      let group = refused.filter(\.error.isAboutOthers)
      guard group.count > 1 else { return }
      try connection.execute("SAVEPOINT ferry_group; SET CONSTRAINTS ALL DEFERRED")
      do {
        let parts = try parts(of: group.map(\.row))
        if vacates { for part in parts { try vacate(part) } }
        for part in parts {
          table = part[0].row.table
          try lock(part)
          try write(part[...])
        }
        try connection.execute("SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT ferry_group")
        refused.removeAll { $0.error.isAboutOthers }
      } catch let error as PostgresError where error.isAboutRow {
        try connection.execute("ROLLBACK TO SAVEPOINT ferry_group; RELEASE SAVEPOINT ferry_group")
        shownDevice = nil
      }
    }
  }

  /// Returns rows in their order, as the rows of single statements.
  private func parts(of rows: [MirrorRow]) throws -> [[Pending]] {
    var (parts, bytes): ([[Pending]], Int) = ([], 0)
    for row in rows {
      let definition = sql[row.table].table
      let pending = Self.pending(
        row, try definition.texts(ofKey: row.key),
        try definition.texts(ofColumns: row.values ?? []))
      if let last = parts.last, last.count < Self.batchMax, bytes <= Self.batchBytesMax,
        last[0].row.table == row.table, last[0].row.device == row.device,
        (last[0].texts == nil) == (pending.texts == nil)
      {
        parts[parts.count - 1].append(pending)
      } else {
        parts.append([pending])
        bytes = 0
      }
      bytes += pending.bytes
    }
    return parts
  }

  private mutating func vacate(_ rows: [Pending]) throws {
    let step = step(rows[0].row.table)
    guard rows[0].texts != nil, let vacate = step.vacate else { return }
    let device = rows[0].row.device ?? ""
    let user = MirrorLedger.storable(owner(device) ?? "")
    (shownDevice, hasWritten) = (nil, true)
    _ = try connection.pipeline {
      $0.add(Self.showDevice, [.text(device), .text(user)])
      $0.add(.once(step.begin(isDelete: false)))
      $0.add(.once(step.own(vacate)), PostgresParameters(columnsOf: rows.map(\.key)))
    }
  }
}

extension PostgresError {
  /// True if another row is the reason: a foreign key or a unique key is violated.
  fileprivate var isAboutOthers: Bool { ["23503", "23505"].contains(sqlState) }
}
