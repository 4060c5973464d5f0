import CFerrySQLite
import FerryProtocol
import FerrySQLite
import FerryTestSupport

@testable import FerrySyncClient

/// A connection as another SQLite library opens it, with the library's own hooks.
final class HostConnection {
  /// The calls of the library's hooks.
  final class Calls {
    var commits = 0
    var rollbacks = 0
    var changedTables: Set<String> = []
    var authorized = 0
  }

  let calls = Calls()
  private(set) var handle: OpaquePointer?

  init(path: String) throws {
    let code = sqlite3_open_v2(
      path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nil)
    guard code == SQLITE_OK else { throw SQLiteError(code: code, message: "\(path)") }
    let pointer = Unmanaged.passUnretained(calls).toOpaque()
    sqlite3_commit_hook(
      handle,
      {
        HostConnection.calls($0)?.commits += 1; return 0
      }, pointer)
    sqlite3_rollback_hook(handle, { HostConnection.calls($0)?.rollbacks += 1 }, pointer)
    sqlite3_update_hook(
      handle,
      { pointer, _, _, table, _ in
        if let table { HostConnection.calls(pointer)?.changedTables.insert(String(cString: table)) }
      }, pointer)
    sqlite3_set_authorizer(
      handle,
      { pointer, _, _, _, _, _ in
        HostConnection.calls(pointer)?.authorized += 1; return SQLITE_OK
      },
      pointer)
  }

  deinit { sqlite3_close_v2(handle) }

  private static func calls(_ pointer: UnsafeMutableRawPointer?) -> Calls? {
    pointer.map { Unmanaged<Calls>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Makes it record, with the fixture's clock and random numbers.
  @discardableResult
  func prepare(for fixture: ReplicaFixture, limits: Limits = .standard) throws -> Bool {
    let clock = Pinned(clock: fixture.clock)
    var surroundings = ReplicaSurroundings.system
    surroundings.limits = limits
    surroundings.wallClock = { clock.clock.now }
    surroundings.random = { clock.clock.nextRandom() }
    guard let handle else { return false }
    return try HostRecording.prepare(handle, in: surroundings)
  }

  // SAFETY: the connection and the clock stay on the test's thread.
  private struct Pinned: @unchecked Sendable { let clock: TestClock }

  /// Runs statements. Returns their rows with `|` between columns.
  @discardableResult
  func run(_ sql: String) throws -> [String] {
    final class Rows { var lines: [String] = [] }
    let rows = Rows()
    let code = sqlite3_exec(
      handle, sql,
      { pointer, count, values, _ in
        let texts = (0..<Int(count)).map { index in
          values?[index].map { String(cString: $0) } ?? "NULL"
        }
        guard let pointer else { return 1 }
        Unmanaged<Rows>.fromOpaque(pointer).takeUnretainedValue().lines
          .append(texts.joined(separator: "|"))
        return 0
      }, Unmanaged.passUnretained(rows).toOpaque(), nil)
    guard code == SQLITE_OK else {
      throw SQLiteError(code: code, message: String(cString: sqlite3_errmsg(handle)))
    }
    return rows.lines
  }

  /// Returns the message with which statements fail; empty if they do not.
  func failure(_ sql: String) -> String {
    do {
      try run(sql)
      return ""
    } catch let error as SQLiteError {
      return error.message
    } catch {
      return "\(error)"
    }
  }

  /// Closes as libraries do that count their statements. Returns SQLite's code.
  func close() -> Int32 {
    let code = sqlite3_close(handle)
    if code == SQLITE_OK { handle = nil }
    return code
  }
}
