import FerrySQLite

/// The functions called by triggers of tracked tables. Only a replica's own connection records
/// writes; on another connection each function fails the write with the reason.
package enum ReplicaGuard {
  /// The names of all functions.
  package static let functions = [
    "ferry_insert", "ferry_update", "ferry_delete", "ferry_existing", "ferry_aside", "ferry_nested",
    "ferry_records", "ferry_applying", "ferry_operation", "ferry_group", "ferry_base",
    "ferry_record", "ferry_number", "ferry_join", "ferry_joined", "ferry_part", "ferry_key",
    "ferry_inserted", "ferry_referred", "ferry_deleted", "ferry_chosen",
  ]

  static func install(on connection: SQLiteConnection) throws(SQLiteError) {
    let refusal = SQLiteError(
      code: DatabaseError.refusedCode,
      message: "this file is a replica, and the table is tracked: the write would not be recorded. "
        + "Open the file with Replica.open to write to this table")
    for name in functions {
      try connection.addFunction(name, argumentCount: -1, callers: .all) { _, answer in
        answer.fail(refusal)
      }
    }
  }
}
