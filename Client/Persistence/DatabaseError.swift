import FerrySQLite

/// SQLite rejected a statement.
///
/// ```swift
/// do {
///   try await database.write { try $0.execute("INSERT INTO tasks(id) VALUES ('t1')") }
/// } catch let error as DatabaseError where error.isConstraint {
///   print("there is such a task already")
/// }
/// ```
public struct DatabaseError: Error, LockReporting, Sendable, Equatable, CustomStringConvertible {
  /// SQLite's message.
  public let message: String
  /// The extended result code (https://sqlite.org/rescode.html).
  public let code: Int32

  package init(_ message: String, code: Int32 = 1) { (self.message, self.code) = (message, code) }

  /// Returns the error of a call after the file was closed.
  static func closed(_ path: String) -> DatabaseError {
    DatabaseError("\(path) is closed", code: 21)
  }

  package init(_ error: SQLiteError) {
    self.init(Self.hint(for: error.message) ?? error.message, code: error.code)
  }

  /// Returns a message that also names the reason and a way that works; `nil` if SQLite's is enough.
  private static func hint(for message: String) -> String? {
    // No code: SQLite has one for all errors of statements, and never translates a text.
    guard message == "too many levels of trigger recursion" else { return nil }
    return message
      + ": a trigger fires itself without end, or more than 1,000 rows in a chain go with each other. In "
      + "a replica, REPLACE in a statement or in its triggers lets triggers fire themselves, so that the "
      + "replaced rows are recorded. Write INSERT … ON CONFLICT … DO UPDATE instead, or give the "
      + "trigger a WHEN condition that its own write does not meet"
  }

  public var description: String { message }

  /// True if a constraint of a table rejects the values: a key, NOT NULL, UNIQUE, CHECK or a
  /// reference.
  public var isConstraint: Bool { code & 0xFF == SQLiteError.constraintCode }

  /// The code of a write that a replica refuses to record, and of one over the limits of a
  /// transaction: extended codes of SQLITE_ERROR without a meaning in SQLite.
  package static let refusedCode: Int32 = 1 | 0xFD << 8
  package static let tooManyWritesCode: Int32 = 1 | 0xFE << 8

  /// True if a replica refused to record the write.
  package var isRefusedWrite: Bool { code == Self.refusedCode || isTooManyWrites }

  /// True if a transaction of a replica cannot hold so many writes.
  package var isTooManyWrites: Bool { code == Self.tooManyWritesCode }

  /// True if another program locks the file for longer than a statement waits.
  package var isBusy: Bool { SQLiteError(code: code, message: message).isBusy }

  /// True if the written row is at fault, and not the file, the disk or a lock.
  package var concernsRow: Bool { SQLiteError(code: code, message: message).concernsRow }
}

/// An error that may report a file locked by another program for longer than a statement waits.
package protocol LockReporting: Error {
  /// True if the same work may succeed as soon as the other program has ended its transaction.
  var isBusy: Bool { get }
}

extension SQLiteError: LockReporting {}
