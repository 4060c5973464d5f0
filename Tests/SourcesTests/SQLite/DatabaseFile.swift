import FerrySQLite
import Foundation

/// A new database file, removed with its folder.
final class DatabaseFile {
  let path: String
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("SQLiteTests.\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    path = folder.appendingPathComponent("test.db").path
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func open(
    _ mode: SQLiteConnection.Mode = .create, busyTimeout: Duration = .seconds(10)
  ) throws -> SQLiteConnection {
    try SQLiteConnection(path: path, mode: mode, busyTimeout: busyTimeout)
  }

  func write(_ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }
}

extension SQLiteConnection {
  static func inMemory() throws -> SQLiteConnection { try SQLiteConnection(path: ":memory:") }

  /// Returns the first column of the first row.
  func integer(_ sql: String) throws -> Int64? {
    try prepare(sql).first { $0.int64(0) }
  }

  func texts(_ sql: String) throws -> [String] { try prepare(sql).rows { $0.text(0) } }
}

/// Runs `body` and returns the expected error.
func failure(_ body: () throws -> Void) -> SQLiteError? {
  do {
    try body()
    return nil
  } catch {
    return error as? SQLiteError
  }
}
