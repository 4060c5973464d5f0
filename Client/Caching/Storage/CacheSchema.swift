import FerrySQLite

/// The tables of a cache's index.
enum CacheSchema {
  /// Raised with every change of the tables: an index of another version is created again.
  static let version: Int64 = 1

  /// `garbage` lists the files that lost an answer; before their removal the cache checks whether
  /// another answer needs them. `state` sums the sizes and counts the uses.
  static let statements = """
    CREATE TABLE entries(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      key BLOB NOT NULL,
      variant BLOB NOT NULL,
      vary TEXT NOT NULL,
      partition TEXT NOT NULL,
      endpoint TEXT NOT NULL,
      status INTEGER NOT NULL,
      requested INTEGER NOT NULL,
      received INTEGER NOT NULL,
      used INTEGER NOT NULL,
      size INTEGER NOT NULL,
      hash BLOB NOT NULL,
      length INTEGER NOT NULL,
      isFile INTEGER NOT NULL,
      fields TEXT NOT NULL,
      body BLOB,
      UNIQUE (key, variant)) STRICT;
    CREATE INDEX entries_used ON entries(used);
    CREATE INDEX entries_received ON entries(received);
    CREATE INDEX entries_endpoint ON entries(endpoint);
    CREATE INDEX entries_partition ON entries(partition);
    CREATE INDEX entries_hash ON entries(hash) WHERE isFile = 1;
    CREATE TABLE garbage(hash BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE state(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      bytes INTEGER NOT NULL,
      uses INTEGER NOT NULL) STRICT;
    INSERT INTO state VALUES (1, 0, 0);
    CREATE TRIGGER entries_insert AFTER INSERT ON entries BEGIN
      UPDATE state SET bytes = bytes + NEW.size;
    END;
    CREATE TRIGGER entries_resize AFTER UPDATE OF size ON entries BEGIN
      UPDATE state SET bytes = bytes + NEW.size - OLD.size;
    END;
    CREATE TRIGGER entries_delete AFTER DELETE ON entries BEGIN
      UPDATE state SET bytes = bytes - OLD.size;
      INSERT OR IGNORE INTO garbage SELECT OLD.hash WHERE OLD.isFile = 1;
    END;
    PRAGMA user_version = 1;
    """
}

extension SQLiteError {
  /// True if the file is not an index of this version: it is damaged, or another program's.
  var isDamage: Bool {
    switch primaryCode {
    // SQLITE_ERROR (a missing table), SQLITE_CORRUPT, SQLITE_NOTADB.
    case 1, 11, 26: true
    default: false
    }
  }
}
