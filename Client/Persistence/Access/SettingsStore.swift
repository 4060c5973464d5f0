import FerryProtocol
import FerrySQLite
import Foundation

/// Small settings of an app in a SQLite file: Codable values by name. They stay on this device,
/// also in a replica's file.
///
/// A setting is written in a separate transaction, or in one with the app's data by the calls with
/// a ``Database``. Secrets do not belong here: a copy of the file contains them.
///
/// ```swift
/// let settings = SettingsStore(replica)
/// try await settings.set("dark", for: "theme")
/// let theme = try await settings.value("theme", as: String.self) ?? "light"
/// ```
public struct SettingsStore: Sendable {
  /// The most bytes of a name.
  public static let nameBytesMax = 256
  /// The most bytes of a value in JSON.
  public static let valueBytesMax = 1 << 20

  private let file: any DatabaseAccess

  /// - Parameter file: a ``LocalDatabase``, a ``DataCenter`` or a `Replica`.
  public init(_ file: any DatabaseAccess) { self.file = file }

  /// Returns a setting; `nil` if it was never set.
  ///
  /// - Throws: ``RecordError`` if the value is of another type; an error of the file.
  public func value<T: Decodable & Sendable>(
    _ name: String, as type: T.Type = T.self
  ) async throws -> T? {
    try await file.read { try Self.value(name, as: type, in: $0) }
  }

  /// Stores a setting; `nil` removes it.
  ///
  /// - Throws: ``RecordError`` for a too long name or value; an error of the file.
  public func set(_ value: (some Encodable & Sendable)?, for name: String) async throws {
    try await file.write { try Self.set(value, for: name, in: $0) }
  }

  /// Removes a setting, if it exists.
  public func remove(_ name: String) async throws {
    try await set(String?.none, for: name)
  }

  /// Returns the names of all settings, in their order.
  public func names() async throws -> [String] {
    try await file.read { database in
      guard try Self.exists(in: database) else { return [] }
      return try database.connection.rows("SELECT name FROM ferry_settings ORDER BY name") {
        $0.text(0)
      }
    }
  }

  // MARK: In a transaction

  /// Returns a setting within a transaction; `nil` if it was never set.
  public static func value<T: Decodable>(
    _ name: String, as type: T.Type = T.self, in database: Database
  ) throws -> T? {
    guard try exists(in: database) else { return nil }
    let bytes = try database.connection.first(
      "SELECT value FROM ferry_settings WHERE name = ?", name
    ) { $0.blob(0) }
    guard let bytes else { return nil }
    do {
      return try JSONDecoder().decode(type, from: Data(bytes))
    } catch {
      throw RecordError(
        .wrongValue, table: table, "the setting \(name) has a value of another type than \(type)")
    }
  }

  /// Stores a setting within a transaction; `nil` removes it.
  public static func set(
    _ value: (some Encodable)?, for name: String, in database: Database
  ) throws {
    guard (1...nameBytesMax).contains(name.utf8.count) else {
      throw RecordError(
        .invalid, table: table,
        "the name of a setting has 1 to \(nameBytesMax) bytes, and this one has "
          + "\(name.utf8.count)")
    }
    guard let value else {
      guard try exists(in: database) else { return }
      try database.connection.run("DELETE FROM ferry_settings WHERE name = ?", name)
      return
    }
    let bytes = [UInt8](try JSONEncoder().encode(value))
    guard bytes.count <= valueBytesMax else {
      throw RecordError(
        .invalid, table: table,
        "the setting \(name) has \(bytes.count) bytes, more than \(valueBytesMax): store it in a table "
          + "or a file")
    }
    try database.connection.execute(
      """
      CREATE TABLE IF NOT EXISTS ferry_settings(
        name TEXT PRIMARY KEY NOT NULL,
        value BLOB NOT NULL                   -- in JSON
      ) WITHOUT ROWID
      """)
    try database.connection.run(
      "INSERT OR REPLACE INTO ferry_settings(name, value) VALUES (?, ?)", name, bytes)
  }

  private static let table: Name = "ferry_settings"

  private static func exists(in database: Database) throws -> Bool {
    try database.connection.exists(
      "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'ferry_settings'")
  }
}
