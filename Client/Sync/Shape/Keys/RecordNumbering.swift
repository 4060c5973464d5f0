import FerryProtocol

/// The numbers of records in mapped tables, if another database counts them in place of the replica
/// (SPEC.md §27). Calls block the replica's thread.
package protocol RecordNumbering: Sendable {
  /// Returns `true` if the other database counts the records of a table.
  func counts(_ table: Name) -> Bool

  /// Returns the identifier of a new row with a number; always the same one.
  func record(of number: Int64, in table: Name) -> String

  /// Returns the numbers of records without one here, in their order.
  ///
  /// - Parameter isTaken: true if another record has the number of the last answer: the records get
  ///   new ones.
  func numbers(of records: [Name], in table: Name, isTaken: Bool) throws -> [Int64]
}

/// A failure of the database that counts: no row is at fault.
struct NumberingFailure: Error {
  /// SQLITE_PROTOCOL: it neither blames a row nor ends the transaction.
  static let code: Int32 = 15

  let message: String
}

/// The numbers that another database has given to records of a pull list: one request serves all of
/// them.
final class NumberedList {
  /// Records of one request.
  private static let requestMax = 10_000

  let numbering: any RecordNumbering
  private var numbers: [RecordKey: Int64] = [:]
  /// Records that need numbers soon, the next one last.
  private var waiting: [Name: [Name]] = [:]

  init(_ numbering: any RecordNumbering) { self.numbering = numbering }

  /// Returns the number of a record.
  ///
  /// - Parameter others: returns further records of the table that need numbers soon.
  func number(
    of record: Name, in table: Name, beside others: () throws -> [Name]
  ) throws -> Int64 {
    if let known = numbers.removeValue(forKey: RecordKey(table: table, record: record)) {
      return known
    }
    let more = try others()
    if !more.isEmpty { waiting[table] = more.reversed() }
    let next = waiting[table, default: []].suffix(Self.requestMax - 1)
    waiting[table]?.removeLast(next.count)
    let records = [record] + Set(next).subtracting([record]).sorted()
    let found = try request(records, in: table, isTaken: false)
    for (record, number) in zip(records, found).dropFirst() {
      numbers[RecordKey(table: table, record: record)] = number
    }
    return found[0]
  }

  /// Returns another number of a record whose own one is taken.
  func newNumber(of record: Name, in table: Name) throws -> Int64 {
    try request([record], in: table, isTaken: true)[0]
  }

  private func request(_ records: [Name], in table: Name, isTaken: Bool) throws -> [Int64] {
    let found: [Int64]
    do {
      found = try numbering.numbers(of: records, in: table, isTaken: isTaken)
    } catch {
      throw NumberingFailure(message: "ferry: numbers of the table \(table): \(error)")
    }
    guard found.count == records.count else {
      throw NumberingFailure(message: "ferry: the table \(table) lacks numbers of records")
    }
    return found
  }
}
