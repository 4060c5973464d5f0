import CFerrySQLite

/// The minimum of SQLite's work for typed rows: a loop over the C interface, with the places of the
/// columns known beforehand.
enum RawRecords {
  /// SQLite failed with this result code.
  struct Failure: Error { let code: Int32 }

  /// Reads all tasks of a file into an array; returns the rows a second.
  static func read(_ count: Int, at path: String) throws -> Double {
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(
      path, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
    defer { sqlite3_close_v2(opened) }
    guard code == SQLITE_OK else { throw Failure(code: code) }
    let watch = Stopwatch()
    var statement: OpaquePointer?
    let prepared = sqlite3_prepare_v2(
      opened, "SELECT id, title, notes, priority, done, due FROM tasks", -1, &statement, nil)
    defer { sqlite3_finalize(statement) }
    guard prepared == SQLITE_OK, let statement else { throw Failure(code: prepared) }
    var tasks: [TaskRecord] = []
    var step = sqlite3_step(statement)
    while step == SQLITE_ROW {
      tasks.append(
        TaskRecord(
          id: text(statement, 0), title: text(statement, 1), notes: text(statement, 2),
          priority: sqlite3_column_int64(statement, 3), done: sqlite3_column_int(statement, 4) != 0,
          due: text(statement, 5)))
      step = sqlite3_step(statement)
    }
    let seconds = watch.seconds
    guard step == SQLITE_DONE else { throw Failure(code: step) }
    guard tasks.count == count else { throw RecordCountError(found: tasks.count) }
    return Double(count) / seconds
  }

  private static func text(_ statement: OpaquePointer, _ column: Int32) -> String {
    let bytes = UnsafeRawBufferPointer(
      start: sqlite3_column_text(statement, column),
      count: Int(sqlite3_column_bytes(statement, column)))
    return String(decoding: bytes, as: UTF8.self)
  }
}
