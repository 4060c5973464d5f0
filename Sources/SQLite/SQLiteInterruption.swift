import CFerrySQLite

/// The reason to end the work of a connection, from the moment at which it was first seen. Kept for
/// as long as SQLite may ask for it.
final class SQLiteInterruption {
  private let due: () -> (any Error)?
  /// The reason, once it was seen. It stays: the open transaction has lost statements.
  private(set) var reason: (any Error)?

  init(_ due: @escaping () -> (any Error)?) { self.due = due }

  /// Returns whether the work has to end.
  func isDue() -> Bool {
    if reason == nil { reason = due() }
    return reason != nil
  }
}

extension SQLiteConnection {
  /// The number of instructions of SQLite's virtual machine between two looks: well below a
  /// millisecond.
  private static var instructions: Int32 { 1_000 }

  /// Runs `body`, and ends the running statement soon after there is a reason
  /// (https://sqlite.org/c3ref/progress_handler.html). No transaction of `body` is committed then.
  ///
  /// - Parameter due: returns the reason to end the work; `nil` to continue. Called often.
  /// - Throws: the reason, if there was one.
  package func interrupting<T>(
    when due: @escaping () -> (any Error)?, _ body: () throws -> T
  ) throws -> T {
    let current = SQLiteInterruption(due)
    interruption = current
    sqlite3_progress_handler(
      handle, Self.instructions,
      { pointer in
        guard let pointer else { return 0 }
        return Unmanaged<SQLiteInterruption>.fromOpaque(pointer).takeUnretainedValue().isDue()
          ? 1 : 0
      }, Unmanaged.passUnretained(current).toOpaque())
    defer {
      sqlite3_progress_handler(handle, 0, nil, nil)
      interruption = nil
    }
    do {
      return try body()
    } catch {
      if current.isDue(), let reason = current.reason { throw reason }
      throw error
    }
  }

  /// Throws the reason to end the work, if there is one.
  package func checkInterruption() throws {
    if let interruption, interruption.isDue(), let reason = interruption.reason { throw reason }
  }
}
