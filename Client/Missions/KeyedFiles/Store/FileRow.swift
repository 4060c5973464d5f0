import FerryProtocol
import FerrySQLite

/// A row of the index.
struct FileRow: Sendable, Equatable {
  var version: FileVersion
  /// The key and the hash, as ``FileKeys`` encodes them.
  var facts: [UInt8]
  var size: Int64
  var bytesOnDisk: Int64
  /// Milliseconds since 1970.
  var storedAt: Int64

  static let select = "SELECT name, id, facts, size, stored, at, pending, suffix FROM files"

  init(version: FileVersion, facts: [UInt8], size: Int64, bytesOnDisk: Int64, storedAt: Int64) {
    self.version = version
    self.facts = facts
    self.size = size
    self.bytesOnDisk = bytesOnDisk
    self.storedAt = storedAt
  }

  init(_ row: SQLiteStatement) throws(FileStoreError) {
    let (id, suffix) = (row.blob(1), row.text(7))
    guard let name = ContentHash(row.blob(0)), id.count == FileKeys.idBytes, row.int64(3) >= 0,
      FileSuffix.isValid(suffix)
    else { throw FileStoreError(.index, "the index has a row that is none of a file") }
    version = FileVersion(
      name: name, suffix: suffix, id: id, isPending: row.int64(6) != 0)
    facts = row.blob(2)
    size = row.int64(3)
    bytesOnDisk = row.int64(4)
    storedAt = row.int64(5)
  }

  /// Returns the facts for users.
  func file(_ keys: FileKeys) throws(FileStoreError) -> StoredFile {
    let facts = try keys.decoded(facts, name: version.name, id: version.id, size: size)
    return StoredFile(
      key: facts.key, size: size, hash: facts.hash, bytesOnDisk: bytesOnDisk, storedAt: storedAt)
  }
}

/// The tables of the index.
enum FileIndexSchema {
  static let statements = """
    CREATE TABLE settings(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE files(
      name BLOB PRIMARY KEY,                  -- of the file: the hash of the key
      suffix TEXT NOT NULL,                   -- the end of the file's name
      id BLOB NOT NULL,                       -- of the version: random
      facts BLOB NOT NULL,                    -- the hash of the content and the key
      size INTEGER NOT NULL,
      stored INTEGER NOT NULL,                -- bytes on disk
      at INTEGER NOT NULL,                    -- milliseconds since 1970
      used INTEGER NOT NULL,                  -- the order of uses
      pending INTEGER NOT NULL                -- 1: perhaps still in the folder of new files
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX files_used ON files(used);
    CREATE INDEX files_at ON files(at);
    CREATE INDEX files_pending ON files(pending) WHERE pending = 1;
    CREATE TABLE totals(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      count INTEGER NOT NULL, bytes INTEGER NOT NULL, stored INTEGER NOT NULL,
      turn INTEGER NOT NULL) STRICT;
    INSERT INTO totals VALUES (1, 0, 0, 0, 0);
    CREATE TRIGGER files_insert AFTER INSERT ON files BEGIN
      UPDATE totals SET count = count + 1, bytes = bytes + NEW.size, stored = stored + NEW.stored;
    END;
    CREATE TRIGGER files_delete AFTER DELETE ON files BEGIN
      UPDATE totals SET count = count - 1, bytes = bytes - OLD.size, stored = stored - OLD.stored;
    END;
    """

}
