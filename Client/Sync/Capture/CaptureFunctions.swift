import FerryProtocol
import FerrySQLite

extension CaptureContext {
  /// Registers the functions for the triggers, and observes the connection's transactions.
  func install(on connection: SQLiteConnection) throws {
    connection.onTransactionEnd { [unowned self] in transactionEnded(isCommitted: $0) }
    let recorder = try installRecording(on: connection)
    try connection.addFunction("ferry_existing", argumentCount: -1) { [unowned self] in
      record(.insert, isExisting: true, $0, $1, recorder)
    }
    try connection.addFunction("ferry_aside", argumentCount: 2) { [unowned self] in
      $1.set(isTakingAside && !isAppliedRecord($0, table: 0) ? 1 : 0)
    }
    try installGroupFunctions(on: connection, recorder)
  }

  /// Registers the functions for the triggers of tracked tables. The caller reports the ends of
  /// transactions.
  ///
  /// - Parameter callers: the schemas with triggers that may call them.
  @discardableResult
  func installRecording(
    on connection: SQLiteConnection, callers: SQLiteFunctionCallers = .trusted
  ) throws -> OperationRecorder {
    let recorder = OperationRecorder(connection: connection, context: self)
    let kinds: [(String, OperationKind)] = [
      ("ferry_insert", .insert), ("ferry_update", .update), ("ferry_delete", .delete),
    ]
    for (name, kind) in kinds {
      try connection.addFunction(name, argumentCount: -1, callers: callers) {
        [unowned self] in record(kind, $0, $1, recorder)
      }
    }
    try connection.addFunction("ferry_nested", argumentCount: 3, callers: callers) {
      [unowned self] arguments, answer in
      do {
        answer.set(try isRepeated(arguments) ? 1 : 0)
      } catch let error as SQLiteError {
        answer.fail(error)
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
    try connection.addFunction("ferry_records", argumentCount: 0, callers: callers) {
      [unowned self] in $1.set(isSuspended || isApplyingValues ? 0 : 1)
    }
    try connection.addFunction("ferry_applying", argumentCount: 2, callers: callers) {
      [unowned self] in $1.set(mode == .applying && isAppliedRecord($0, table: 0) ? 1 : 0)
    }
    // For triggers of other modules, such as a mirror's.
    try connection.addFunction("change_author", argumentCount: 0, callers: callers) {
      [unowned self] _, answer in
      guard let author, author != .server else { return answer.setNull() }
      Array(author.description.utf8).withUnsafeBufferPointer { answer.set(text: $0) }
    }
    try KeyFunctions.install(on: connection, self, callers: callers)
    try StagedChanges.install(on: connection, callers: callers)
    return recorder
  }

  private func installGroupFunctions(
    on connection: SQLiteConnection, _ recorder: OperationRecorder
  ) throws {
    try connection.addFunction("ferry_operation", argumentCount: 0) {
      [unowned self] _, answer in
      do {
        _ = try currentGroup(start: recorder.readStart)
        if let refusal = admit(operations: 1, bytes: 0) { return answer.fail(refusal) }
        let id = nextOperation().value
        withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { answer.set(blob: $0) }
      } catch let refusal as CaptureRefusal {
        answer.fail(refusal)
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
    try connection.addFunction("ferry_group", argumentCount: 0) { [unowned self] _, answer in
      if let group = try? currentGroup(start: recorder.readStart) { answer.set(group.number) }
    }
    try connection.addFunction("ferry_base", argumentCount: 0) { [unowned self] _, answer in
      if let group = try? currentGroup(start: recorder.readStart) { answer.set(group.base) }
    }
  }

  /// Collects a row, or a part of it, and records the row after the last part. Returns 0.
  ///
  /// - Parameter isExisting: true if the row is older than the tracking of the table. Then the
  ///   author had seen no change from the server.
  private func record(
    _ kind: OperationKind, isExisting: Bool = false, _ arguments: SQLiteArguments,
    _ answer: SQLiteAnswer, _ recorder: OperationRecorder
  ) {
    answer.set(0)
    if isSuspended { return }
    do {
      try admission?()
      let isCollected = try collect(arguments, kind, recorder).get()
      guard isCollected, arguments.int64(0) & CapturedPart.last != 0 else { return }
      try recorder.record(
        kind, table: arguments.textBytes(1), record: arguments.textBytes(2),
        isExisting: isExisting)
    } catch let refusal as CaptureRefusal {
      answer.fail(refusal)
    } catch let error as SQLiteError {
      answer.fail(error)
    } catch {
      answer.fail("ferry: \(error)")
    }
  }

  /// Collects a row or a difference. Returns true if there is a change to record.
  ///
  /// The arguments are part, table and key. Then each column has a JSON name and one value (a row),
  /// or the old and the new one (a difference).
  private func collect(
    _ arguments: SQLiteArguments, _ kind: OperationKind, _ recorder: OperationRecorder
  ) -> Result<Bool, CaptureRefusal> {
    if mode == .applying && isOfChange(kind, arguments) { return .success(false) }
    // Read before the key is used as a text.
    let keyType = arguments.type(2)
    let isOfBatch = mode == .batching && isOfBatch(arguments)
    if isOfBatch && kind != .update { return .success(false) }
    let isFirst = arguments.int64(0) & CapturedPart.first != 0
    if isFirst || kind == .delete, let fault = keyFault(arguments, keyType, recorder) {
      // Another program wrote the row: it was never recorded, and may go.
      return kind == .delete ? .success(false) : .failure(refusal(fault, arguments, recorder))
    }
    let fault: CapturedRow.Fault? = collect { row in
      if isFirst { row.begin(kind) }
      if kind != .update { return collectRow(arguments, into: &row) }
      return collectDifference(arguments, into: &row, isOfBatch: isOfBatch)
    }
    if let fault { return .failure(refusal(fault, arguments, recorder)) }
    if isOfBatch {
      let isLast = arguments.int64(0) & CapturedPart.last != 0
      if isLast, let fault = collect({ $0.sizeFault }) {
        return .failure(refusal(fault, arguments, recorder))
      }
      return .success(false)
    }
    return .success(kind != .update || collect { $0.hasColumns })
  }

  /// Collects a row's columns. Returns the reason if one cannot be recorded.
  private func collectRow(
    _ arguments: SQLiteArguments, into row: inout CapturedRow
  ) -> CapturedRow.Fault? {
    for index in stride(from: 3, to: arguments.count - 1, by: 2) {
      if let fault = row.add(name: arguments.textBytes(index), arguments, at: index + 1) {
        return fault
      }
    }
    return nil
  }

  private func collectDifference(
    _ arguments: SQLiteArguments, into row: inout CapturedRow, isOfBatch: Bool
  ) -> CapturedRow.Fault? {
    for index in stride(from: 3, to: arguments.count - 2, by: 3) {
      let name = arguments.textBytes(index)
      if isSame(arguments, index + 1, index + 2) {
        row.measure(name: name, arguments, at: index + 2)
      } else if isOfBatch {
        row.measure(name: name, arguments, old: index + 1, new: index + 2)
      } else if let fault = row.addDifference(name: name, arguments, old: index + 1, new: index + 2)
      {
        return fault
      }
    }
    return nil
  }

  /// Returns true if a write is the remote change being applied. Writes that repeat the author's
  /// are ignored before, by ``isRepeated(_:)``.
  private func isOfChange(_ kind: OperationKind, _ arguments: SQLiteArguments) -> Bool {
    let isRecord = isAppliedRecord(arguments, table: 1)
    if applied.effect == .values {
      applied.isApplied = applied.isApplied || isRecord
      return true
    }
    guard isRecord && kind == .delete else { return false }
    applied.isApplied = true
    return true
  }

  /// Returns true if a write is a batch's own: the first write to the record. The first part of a
  /// wide row decides.
  private func isOfBatch(_ arguments: SQLiteArguments) -> Bool {
    if arguments.int64(0) & CapturedPart.first != 0 {
      isBatched = !applied.isApplied && isAppliedRecord(arguments, table: 1)
      applied.isApplied = applied.isApplied || isBatched
    }
    return isBatched
  }

  /// Returns true if a user's trigger makes a write while a remote change is applied here or in
  /// another space, and the author of the change has made the same write.
  ///
  /// The arguments are table, key and kind of the write.
  private func isRepeated(_ arguments: SQLiteArguments) throws -> Bool {
    guard let other = mode == .applying ? self : otherApplying() else { return false }
    func text(_ index: Int) -> String {
      String(decoding: arguments.textBytes(index), as: UTF8.self)
    }
    guard let write = OperationKind(rawValue: text(2)) else { return true }
    let isRecord = mode == .applying && isAppliedRecord(arguments, table: 0)
    return try other.origin(of: write, isRecord: isRecord, in: self) {
      RecordKey(table: Name(text(0)), record: Name(text(1)))
    } == .author
  }

  /// Returns true if the arguments, table and key from `table` on, name the record being applied.
  private func isAppliedRecord(_ arguments: SQLiteArguments, table: Int) -> Bool {
    applied.key.table.isEqual(to: UnsafeRawBufferPointer(arguments.textBytes(table)))
      && applied.key.record.isEqual(to: UnsafeRawBufferPointer(arguments.textBytes(table + 1)))
  }

  private func isSame(_ arguments: SQLiteArguments, _ old: Int, _ new: Int) -> Bool {
    let type = arguments.type(new)
    guard arguments.type(old) == type else { return false }
    switch type {
    case .null: return true
    case .integer: return arguments.int64(old) == arguments.int64(new)
    case .real: return arguments.double(old).bitPattern == arguments.double(new).bitPattern
    case .text:
      return hasSameBytes(
        UnsafeRawBufferPointer(arguments.textBytes(old)),
        UnsafeRawBufferPointer(arguments.textBytes(new)))
    case .blob: return hasSameBytes(arguments.blobBytes(old), arguments.blobBytes(new))
    }
  }

  /// Returns the reason why the key cannot identify a record, or `nil`.
  private func keyFault(
    _ arguments: SQLiteArguments, _ type: SQLiteType, _ recorder: OperationRecorder
  ) -> String? {
    let limit = Limits.standard.recordBytes
    var rule = "must have 1 to \(limit) bytes of UTF-8 without U+0000"
    if type == .text {
      let text = arguments.textBytes(2)
      if (1...limit).contains(text.count), !text.contains(0), isValidUTF8(text) { return nil }
    } else if type != .integer {
      rule =
        "must be text and not NULL, or of the kind for which its table is tracked; give it an id "
        + "such as a UUIDv7"
    }
    let columns = recorder.keyColumns(of: arguments.textBytes(1))
    let list = columns.joined(separator: ", ")
    let key = "a record's key" + (columns.isEmpty ? "" : " (\(list))")
    let fault = KeyCodec.Fault(code: type == .integer ? arguments.int64(2) : 0)
    guard columns.indices.contains(fault.place) else { return "\(key) \(rule)" }
    let column = "column \(columns[fault.place]) of \(key)"
    return fault.isLength
      ? "\(column) is too long: the whole key may have \(limit) bytes"
      : "\(column) must be an integer, a blob or a text in UTF-8, and not NULL"
  }

  /// Returns the refusal of a row, with the names of this file.
  private func refusal(
    _ fault: CapturedRow.Fault, _ arguments: SQLiteArguments, _ recorder: OperationRecorder
  ) -> CaptureRefusal {
    guard let column = fault.column else { return refusal(fault.reason, arguments, recorder) }
    let name = recorder.localName(
      ofColumn: column, in: recorder.localName(of: arguments.textBytes(1)))
    return refusal("column \(name) \(fault.reason)", arguments, recorder)
  }

  private func refusal(
    _ fault: String, _ arguments: SQLiteArguments, _ recorder: OperationRecorder
  ) -> CaptureRefusal {
    let table = recorder.localName(of: arguments.textBytes(1))
    return CaptureRefusal("ferry: table \(table): \(fault)")
  }
}
