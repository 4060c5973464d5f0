import FerryPostgres
import FerryProtocol

extension PostgresArray<[UInt8]> {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresParameters {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresRow {
  /// Returns a record's identifier from `records` or `operations`.
  package func recordName(_ column: Int) throws -> StoredRecordName {
    try bytes(column) { StoredRecordName(bytes: $0) }
  }

  /// Returns a name stored as text.
  func name(_ column: Int) throws(PostgresError) -> Name { Name(try text(column)) }
}
