import FerryProtocol
import FerrySQLite

/// Operations of local work recorded in a replica's file, for harnesses that need the operations of
/// one transaction.
package enum RecordedOperations {
  /// Returns the number of the newest operation ever recorded in the file; 0 before the first.
  package static func lastSequence(_ connection: SQLiteConnection) throws -> Int64 {
    try connection.first(
      """
      SELECT max(ifnull((SELECT max(seq) FROM ferry_operations), 0), removed_order) FROM ferry_replica
      """
    ) { $0.int64(0) } ?? 0
  }

  /// Reads operations numbered above `sequence` and still in the file, in order. Works within the
  /// recording transaction, too. Columns of deletes are left out.
  package static func read(
    _ connection: SQLiteConnection, after sequence: Int64
  ) throws -> [LocalOperation] {
    try connection.rows(
      """
      SELECT id, tbl, record, kind, data, base, marks FROM ferry_pending
      WHERE seq > ? AND \(Workload.isNotStray) ORDER BY seq
      """, sequence
    ) { row in
      guard let id = UniqueID(bytes: row.blobBytes(0)),
        let kind = OperationKind(rawValue: row.text(3))
      else { throw UnreadableEvidence("ferry_pending contains a row that is not an operation") }
      return LocalOperation(
        id: OperationID(id), key: RecordKey(table: row.text(1), record: row.text(2)), kind: kind,
        columns: kind == .delete || row.isNull(4)
          ? [] : try StoredForm.columns(row.textBytes(4), of: kind),
        base: row.int64(5),
        increments: row.isNull(6) ? [] : try StoredForm.marks(row.textBytes(6)))
    }
  }

  /// Returns the increment columns of a replica's file, from the JSON stored there.
  package static func increments(marked text: UnsafeRawBufferPointer) throws -> Set<Name> {
    try StoredForm.marks(text)
  }
}
