import CFerrySQLite

/// An error of SQLite, with SQLite's message.
@usableFromInline
package struct SQLiteError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The extended result code (https://sqlite.org/rescode.html).
  package let code: Int32
  /// SQLite's message.
  package let message: String
  /// The statement, if one was running.
  package let sql: String?

  package init(code: Int32, message: String, sql: String? = nil) {
    self.code = code
    self.message = message
    self.sql = sql
  }

  /// The lower eight bits: the kind of failure.
  package var primaryCode: Int32 { code & 0xFF }

  /// The error of a write through a read-only connection.
  package static let readOnly = SQLiteError(
    code: SQLITE_READONLY, message: "attempt to write a readonly database")
  /// The code of a violated constraint.
  package static let constraintCode = SQLITE_CONSTRAINT

  /// True for a UNIQUE constraint or index (SQLITE_CONSTRAINT_UNIQUE): another row has the same
  /// values.
  package var isUnique: Bool { code == SQLITE_CONSTRAINT | 8 << 8 }

  /// True if a NOT NULL column has no value (SQLITE_CONSTRAINT_NOTNULL).
  package var isNotNull: Bool { code == SQLITE_CONSTRAINT | 5 << 8 }

  /// Another row has the key (SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID).
  package var isPrimaryKey: Bool {
    code == SQLITE_CONSTRAINT | 6 << 8 || code == SQLITE_CONSTRAINT | 10 << 8
  }

  /// True if the row is at fault whatever other rows there are: CHECK, NOT NULL, a type, the size.
  package var concernsRowAlone: Bool {
    [1, 5, 12].contains { code == SQLITE_CONSTRAINT | $0 << 8 }
      || [SQLITE_TOOBIG, SQLITE_MISMATCH].contains(primaryCode)
  }

  /// A constraint of the schema refused the row.
  package var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }

  /// True if the written row is at fault, and not the file, the disk or a lock. A constraint, a
  /// trigger or an expression of the schema rejects the row, or the row is too large.
  package var concernsRow: Bool {
    [SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_TOOBIG, SQLITE_MISMATCH, SQLITE_RANGE]
      .contains(primaryCode)
  }

  /// True if a foreign key (SQLITE_CONSTRAINT_FOREIGNKEY) rejected the row or, if deferred, the
  /// commit.
  package var isForeignKey: Bool { code == SQLITE_CONSTRAINT | 3 << 8 }

  /// Another connection holds the lock, for longer than the busy timeout. SQLITE_LOCKED is no such
  /// error without a shared cache: then the connection disturbs itself.
  package var isBusy: Bool { primaryCode == SQLITE_BUSY }

  /// The disk or the configured size is full.
  package var isDiskFull: Bool { primaryCode == SQLITE_FULL }

  /// True if the disk or the file's permissions are at fault, and not the statement.
  package var concernsDisk: Bool {
    [SQLITE_FULL, SQLITE_READONLY, SQLITE_IOERR].contains(primaryCode)
  }

  /// The file is not a SQLite database.
  package var isNotADatabase: Bool { primaryCode == SQLITE_NOTADB }

  @usableFromInline
  package var description: String { message }
}
