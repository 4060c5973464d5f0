import CFerrySQLite

/// Keeps the condition for as long as SQLite may ask for it.
private final class Interruption {
  let isDue: () -> Bool
  init(_ isDue: @escaping () -> Bool) { self.isDue = isDue }
}

extension SQLiteConnection {
  /// The number of instructions of SQLite's virtual machine between two looks: well below a
  /// millisecond.
  private static var instructions: Int32 { 1_000 }

  /// Runs `body`, and ends its running statement soon after a condition is true
  /// (https://sqlite.org/c3ref/progress_handler.html).
  ///
  /// - Throws: `CancellationError` if that happened.
  package func interrupting<T>(
    when isDue: @escaping () -> Bool, _ body: () throws -> T
  ) throws -> T {
    let interruption = Interruption(isDue)
    sqlite3_progress_handler(
      handle, Self.instructions,
      { pointer in
        guard let pointer else { return 0 }
        return Unmanaged<Interruption>.fromOpaque(pointer).takeUnretainedValue().isDue() ? 1 : 0
      }, Unmanaged.passUnretained(interruption).toOpaque())
    defer {
      sqlite3_progress_handler(handle, 0, nil, nil)
      withExtendedLifetime(interruption) {}
    }
    do {
      return try body()
    } catch {
      if isDue() { throw CancellationError() }
      throw error
    }
  }
}
