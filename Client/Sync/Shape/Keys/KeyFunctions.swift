import FerryProtocol
import FerrySQLite

/// SQL functions to convert a device's own keys into records' identifiers and back (SPEC.md §27).
enum KeyFunctions {
  /// Registers the functions that only read, on any connection of a replica's file.
  ///
  /// - Parameter callers: the schemas with triggers that may call them.
  static func install(
    on connection: SQLiteConnection, callers: SQLiteFunctionCallers = .trusted
  ) throws {
    let numbers = KeyNumbers(connection: connection)
    func add(
      _ name: String, _ count: Int32,
      _ body: @escaping (SQLiteArguments, SQLiteAnswer) throws -> Void
    ) throws {
      try Self.add(name, count, to: connection, callers, body)
    }
    try add("ferry_record", 2) { arguments, answer in
      // Another value than an integer is no number of a row.
      guard arguments.type(1) == .integer else { return answer.setNull() }
      let number = arguments.int64(1)
      answer.set(optional: try numbers.record(of: number, in: arguments.name(0))?.record)
    }
    try add("ferry_number", 2) { arguments, answer in
      guard arguments.type(1) == .text, let record = try arguments.record(1),
        let number = try numbers.number(of: record, in: arguments.name(0))
      else { return answer.setNull() }
      answer.set(number)
    }
    try add("ferry_join", -1) { arguments, answer in
      let values = (0..<arguments.count).map(arguments.value)
      answer.set(optional: KeyCodec.record(for: values))
    }
    // The identifier of a row that is recorded; the code of a fault if the key is bad.
    try add("ferry_joined", -1) { arguments, answer in
      let values = (0..<arguments.count).map(arguments.value)
      guard let record = KeyCodec.record(for: values) else {
        return answer.set(KeyCodec.Fault(in: values).code)
      }
      answer.set(optional: record)
    }
    // A part of a sought key; NULL if no row can have it.
    try add("ferry_part", 4) { arguments, answer in
      guard let part = try arguments.keyPart() else { return answer.setNull() }
      answer.set(part)
    }
    // A part of a written key.
    try add("ferry_key", 5) { arguments, answer in
      guard let part = try arguments.keyPart() else {
        throw CaptureRefusal(
          "the identifier \(arguments.value(0).literal) has no value for the key's column "
            + "\(arguments.name(4))")
      }
      answer.set(part)
    }
  }

  /// Registers the functions that change the numbers of records.
  static func install(
    on connection: SQLiteConnection, _ context: CaptureContext, callers: SQLiteFunctionCallers
  ) throws {
    try install(on: connection, callers: callers)
    let numbers = KeyNumbers(connection: connection)
    func add(
      _ name: String, _ count: Int32 = 2,
      _ body: @escaping (SQLiteArguments, SQLiteAnswer) throws -> Void
    ) throws {
      try Self.add(name, count, to: connection, callers, body)
    }
    try add("ferry_inserted") { [unowned context] arguments, answer in
      guard !context.isSuspended, let number = try arguments.number(1) else {
        return answer.setNull()
      }
      let (table, known) = try known(arguments, number)
      let state = try NumberedRecord.inserted(
        known, in: try context.transaction()
      ) { try numbers.newRecord(number, in: table, context) }
      if state != known { try numbers.set(state, of: number, in: table) }
      answer.set(optional: state.record)
    }
    try add("ferry_referred", 3) { [unowned context] arguments, answer in
      guard !context.isSuspended, let number = try arguments.number(1, at: 2) else {
        return answer.setNull()
      }
      let (table, known) = try known(arguments, number)
      if let known, known.transaction == nil { return answer.set(optional: known.record) }
      let state = try NumberedRecord.referred(
        known, in: try context.transaction()
      ) { try numbers.newRecord(number, in: table, context) }
      if state != known { try numbers.set(state, of: number, in: table) }
      answer.set(optional: state.record)
    }
    try add("ferry_deleted") { [unowned context] arguments, answer in
      guard !context.isSuspended, let number = try arguments.number(1) else {
        return answer.setNull()
      }
      let (table, known) = try known(arguments, number)
      guard let known else { return answer.setNull() }
      let state = known.deleted(in: try context.transaction())
      try numbers.set(state, of: number, in: table)
      answer.set(optional: state.record)
    }
    try add("ferry_chosen") { [unowned context] arguments, answer in
      guard let record = try arguments.record(1) else { return answer.setNull() }
      let table = arguments.name(0)
      answer.set(
        try numbers.choose(
          for: record, in: table, transaction: context.transaction(), besides: context.wished,
          by: context.numbered(table)))
    }
    func known(
      _ arguments: SQLiteArguments, _ number: Int64
    ) throws -> (table: Name, state: NumberedRecord?) {
      let table = arguments.name(0)
      return (table, try numbers.record(of: number, in: table))
    }
  }

  private static func add(
    _ name: String, _ count: Int32, to connection: SQLiteConnection,
    _ callers: SQLiteFunctionCallers,
    _ body: @escaping (SQLiteArguments, SQLiteAnswer) throws -> Void
  ) throws {
    try connection.addFunction(name, argumentCount: count, callers: callers) {
      arguments, answer in
      do {
        try body(arguments, answer)
      } catch let refusal as CaptureRefusal {
        answer.fail(refusal)
      } catch let error as SQLiteError {
        answer.fail(error)
      } catch let failure as NumberingFailure {
        answer.fail(SQLiteError(code: NumberingFailure.code, message: failure.message))
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
  }
}

extension KeyNumbers {
  /// Returns the identifier of a new row.
  ///
  /// - Throws: ``CaptureRefusal`` if another row here has the identifier.
  fileprivate func newRecord(
    _ number: Int64, in table: Name, _ context: CaptureContext
  ) throws -> String {
    let record = context.newRecord(number, in: table)
    guard context.numbered(table) != nil, let other = try self.number(of: record, in: table),
      other != number
    else { return record }
    throw CaptureRefusal(
      "the record of number \(number) of the table \(table) has the number \(other); use another number"
    )
  }
}

extension CaptureContext {
  /// Returns the transaction that reserves and releases numbers.
  ///
  /// - Throws: the reason why this connection cannot record a change now.
  fileprivate func transaction() throws -> Int64 {
    try admission?()
    return mode == .applying ? NumberedRecord.pull : transactionMark()
  }
}

extension SQLiteArguments {
  fileprivate func name(_ index: Int) -> Name {
    Name(String(decoding: textBytes(index), as: UTF8.self))
  }

  /// Returns a device's own number; `nil` for NULL.
  ///
  /// - Parameter place: the argument that names the column of a reference.
  /// - Throws: ``CaptureRefusal`` for any other value.
  fileprivate func number(_ index: Int, at place: Int? = nil) throws -> Int64? {
    switch type(index) {
    case .null: return nil
    case .integer: return int64(index)
    default:
      if let place {
        throw CaptureRefusal(
          "ferry: \(name(place)) refers to \(name(0)), whose keys are integers, and "
            + "\(value(index).literal) is none")
      }
      throw CaptureRefusal(
        "ferry: the value \(value(index).literal) is no key of the table \(name(0)), whose keys are "
          + "integers")
    }
  }

  /// Returns a record's identifier; `nil` for NULL.
  ///
  /// - Throws: ``CaptureRefusal`` for any other value.
  fileprivate func record(_ index: Int) throws -> String? {
    switch type(index) {
    case .null: return nil
    case .text: return String(decoding: textBytes(index), as: UTF8.self)
    default:
      throw CaptureRefusal(
        "the value \(value(index).literal) is no record's identifier, and the table's keys are "
          + "integers of this device")
    }
  }

  /// Returns a part of the key with an identifier. The arguments are the identifier, the part's place,
  /// the number of columns, and the column's affinity.
  fileprivate func keyPart() throws -> Value? {
    guard type(0) == .text, let record = try record(0) else { return nil }
    let (place, count) = (Int(int64(1)), Int(int64(2)))
    guard let key = KeyCodec.key(of: record, columns: count), key.indices.contains(place),
      KeyAffinity(rawValue: int64(3))?.keeps(key[place]) == true
    else { return nil }
    return key[place]
  }

  /// Returns a value; `.null` for a text that is not in UTF-8: no identifier may contain it.
  fileprivate func value(_ index: Int) -> Value {
    switch type(index) {
    case .null: .null
    case .integer: .integer(int64(index))
    case .real: .real(double(index))
    case .text: String(validating: textBytes(index), as: UTF8.self).map { .text($0) } ?? .null
    case .blob: .blob([UInt8](blobBytes(index)))
    }
  }
}

extension SQLiteAnswer {
  fileprivate func set(optional text: String?) {
    guard var text else { return setNull() }
    text.withUTF8 { set(text: $0) }
  }

  fileprivate func set(_ value: Value) {
    switch value {
    case .null, .real: setNull()
    case .integer(let integer): set(integer)
    case .text(let text): set(optional: text)
    case .blob(let bytes): bytes.withUnsafeBytes { set(blob: $0) }
    }
  }
}
