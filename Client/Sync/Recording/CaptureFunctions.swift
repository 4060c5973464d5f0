import FerryProtocol
import SQLite

extension CaptureContext {
  /// Registers the functions that the triggers call, and follows the connection's transactions.
  func install(on connection: SQLiteConnection) throws {
    connection.onTransactionEnd { [unowned self] _ in endTransaction() }
    try connection.addFunction("ferry_row", argumentCount: -1) { [unowned self] in
      collect($0, $1, stride: 2)
    }
    try connection.addFunction("ferry_difference", argumentCount: -1) { [unowned self] in
      collect($0, $1, stride: 3)
    }
    try connection.addFunction("ferry_data", argumentCount: 0) { [unowned self] _, answer in
      withRow { answer.set(text: $0) }
    }
    try connection.addFunction("ferry_applying", argumentCount: 0) { [unowned self] _, answer in
      answer.set(mode == .applying ? 1 : 0)
    }
    try connection.addFunction("ferry_nested", argumentCount: 2) { [unowned self] in
      $1.set(isNested($0) ? 1 : 0)
    }
    try installGroupFunctions(on: connection)
  }

  private func installGroupFunctions(on connection: SQLiteConnection) throws {
    // Statements of the connection that calls: unowned, since the connection owns the functions.
    let start = try GroupStart(connection: connection)
    try connection.addFunction("ferry_operation", argumentCount: 0) {
      [unowned self] _, answer in
      do {
        _ = try currentGroup(start: start.read)
        let id = try nextOperation().get().value
        withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { answer.set(blob: $0) }
      } catch let refusal as CaptureRefusal {
        answer.fail(refusal.message)
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
    try connection.addFunction("ferry_group", argumentCount: 0) { [unowned self] _, answer in
      if let group = try? currentGroup(start: start.read) { answer.set(group.number) }
    }
    try connection.addFunction("ferry_base", argumentCount: 0) { [unowned self] _, answer in
      if let group = try? currentGroup(start: start.read) { answer.set(group.base) }
    }
  }

  /// Arguments: first, table, key, then for each column its JSON name and one value (a row) or
  /// the old and the new one (a difference). Answers with 1 where there is something to record.
  private func collect(_ arguments: SQLiteArguments, _ answer: SQLiteAnswer, stride: Int) {
    if mode == .applying && !isCascade(arguments) {
      isApplied = isApplied || isAppliedRecord(arguments, table: 1)
      answer.set(0)
      return
    }
    if mode == .batching && isOfBatch(arguments) { return answer.set(0) }
    if arguments.int64(0) == 1 {
      if let fault = keyFault(arguments) { return answer.fail(fault) }
    }
    let fault = collect { row -> String? in
      if arguments.int64(0) == 1 { row.begin() }
      var index = 3
      while index + stride <= arguments.count {
        defer { index += stride }
        if stride == 3 && isSame(arguments, index + 1, index + 2) { continue }
        let value = index + stride - 1
        if let fault = row.add(name: arguments.textBytes(index), arguments, at: value) {
          return fault
        }
      }
      answer.set(stride == 2 || row.hasColumns ? 1 : 0)
      return nil
    }
    if let fault { answer.fail(fault) }
  }

  /// Whether a row is deleted along with another one to which a remote delete is being applied.
  private func isCascade(_ arguments: SQLiteArguments) -> Bool {
    isDeleting && !isAppliedRecord(arguments, table: 1)
  }

  /// Whether a write is a batch's own: the first one of its record. A wide row is shown in parts,
  /// of which the first decides.
  private func isOfBatch(_ arguments: SQLiteArguments) -> Bool {
    if arguments.int64(0) == 1 {
      isBatched = !isApplied && isAppliedRecord(arguments, table: 1)
      isApplied = isApplied || isBatched
    }
    return isBatched
  }

  /// Whether a write comes from a trigger of the user's while a remote change is applied. What a
  /// remote delete takes along by foreign keys is let through.
  private func isNested(_ arguments: SQLiteArguments) -> Bool {
    guard mode == .applying, !isDeleting else { return false }
    return isApplied || !isAppliedRecord(arguments, table: 0)
  }

  /// Whether the arguments, table and key from `table` on, name the record being applied.
  private func isAppliedRecord(_ arguments: SQLiteArguments, table: Int) -> Bool {
    arguments.textBytes(table).elementsEqual(appliedRecord.table.utf8)
      && arguments.textBytes(table + 1).elementsEqual(appliedRecord.record.utf8)
  }

  private func isSame(_ arguments: SQLiteArguments, _ old: Int, _ new: Int) -> Bool {
    let type = arguments.type(new)
    guard arguments.type(old) == type else { return false }
    switch type {
    case .null: return true
    case .integer: return arguments.int64(old) == arguments.int64(new)
    case .real: return arguments.double(old).bitPattern == arguments.double(new).bitPattern
    case .text: return arguments.textBytes(old).elementsEqual(arguments.textBytes(new))
    case .blob: return arguments.blobBytes(old).elementsEqual(arguments.blobBytes(new))
    }
  }

  /// Why the key cannot be a record's identifier.
  private func keyFault(_ arguments: SQLiteArguments) -> String? {
    let limit = Limits.standard.recordBytes
    guard arguments.type(2) == .text else {
      return "ferry: a record's key is text and not NULL; give it an id such as a UUIDv7"
    }
    let text = arguments.textBytes(2)
    guard (1...limit).contains(text.count), !text.contains(0), isValidUTF8(text) else {
      return "ferry: a record's key has 1 to \(limit) bytes of UTF-8 without U+0000"
    }
    return nil
  }
}

/// Reads, inside the user's transaction, what a group begins with.
private final class GroupStart {
  private unowned let connection: SQLiteConnection

  init(connection: SQLiteConnection) throws { self.connection = connection }

  func read() throws -> (group: Int64, base: SequenceNumber, clock: HybridTimestamp, offset: Int64)
  {
    let statement = try connection.statement(
      """
      SELECT (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'ferry_pending'),
        applied, clock, clock_offset, (SELECT id FROM ferry_pending ORDER BY seq DESC LIMIT 1)
      FROM ferry_replica
      """)
    let state = try statement.first { row in
      let newest = UniqueID(bytes: row.blobBytes(4))?.timestamp ?? .zero
      let clock = max(HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(2))), newest)
      return (row.int64(0), row.int64(1), clock, row.int64(3))
    }
    guard let state else { throw CaptureRefusal("ferry: the replica's state is missing") }
    return state
  }
}
