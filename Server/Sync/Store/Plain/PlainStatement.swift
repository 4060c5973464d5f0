import FerryPlatform
import FerryProtocol

/// A statement written once for both stores, with parameters `$1`, `$2` … It contains only SQL
/// known to both databases, except for ``Locking``.
package struct PlainStatement: Sendable {
  /// Locks on the rows read by a query until the transaction ends. The embedded store has one
  /// writer, so it takes none.
  enum Locking: String {
    case none = ""
    case waiting = " FOR UPDATE"
    /// Leaves out rows locked by others.
    case skipping = " FOR UPDATE SKIP LOCKED"
  }

  /// Unique among all statements, at most 63 bytes.
  let name: String
  /// The text for PostgreSQL.
  let sql: String
  /// The text for SQLite, which would number `$1` by the place of its first use.
  let sqlite: String

  init(_ name: String, _ sql: String, _ locking: Locking = .none) {
    (self.name, self.sql) = (name, sql + locking.rawValue)
    sqlite = sql.replacing(bytes: "$", with: "?")
  }
}

/// A parameter of such a statement; `nil` is NULL.
package enum PlainValue: Sendable {
  case integer(Int64?)
  case text(String?)
  /// Text in UTF-8.
  case utf8([UInt8])
  case bytes([UInt8])
  /// A `boolean` in PostgreSQL, 1 or 0 in SQLite.
  case flag(Bool)
  /// A record's identifier as `records` and `operations` have it.
  case record(Name)
  /// A `uuid` in PostgreSQL, sixteen bytes in SQLite.
  case uuid(UniqueID?)
}

/// A row of a result. Columns are counted from 0.
package protocol PlainRow {
  func isNull(_ column: Int) -> Bool
  func integer(_ column: Int) throws -> Int64
  func text(_ column: Int) throws -> String
  func bytes(_ column: Int) throws -> [UInt8]
  /// Lends the bytes of a text or of binary data; no copy is made.
  func bytes<T>(_ column: Int, _ body: (UnsafeRawBufferPointer) throws -> T) throws -> T
  func flag(_ column: Int) throws -> Bool
  /// Returns a record's identifier from `records` or `operations`.
  func recordName(_ column: Int) throws -> StoredRecordName
}

extension PlainRow {
  func optionalInteger(_ column: Int) throws -> Int64? {
    isNull(column) ? nil : try integer(column)
  }

  func optionalText(_ column: Int) throws -> String? { isNull(column) ? nil : try text(column) }

  /// Reads sixteen bytes; `nil` for NULL and for any other count.
  func uniqueID(_ column: Int) throws -> UniqueID? {
    isNull(column) ? nil : try bytes(column) { UniqueID(bytes: $0) }
  }

  /// Reads the key of a record: the table, and the identifier in the next column.
  func recordKey(_ column: Int) throws -> RecordKey {
    RecordKey(table: Name(try text(column)), record: try recordName(column + 1).name)
  }

  /// Reads the stored state of a record.
  func recordState(_ column: Int) throws -> RecordState {
    try bytes(column) { try RecordState(stored: $0, limits: .stored) }
  }
}
