/// The tables of `content.db`: everything about the content of a folder. Missions, bundles and
/// downloads each have a connection of their own.
enum ContentSchema {
  /// The steps from one format to the next; existing steps never change, new ones are added.
  static let steps = [missions + bundles + downloads + drafts]

  private static let missions = """
    CREATE TABLE missions(                    -- versions that were asked for
      mission TEXT NOT NULL,
      version INTEGER NOT NULL,
      state TEXT NOT NULL,
      complete INTEGER NOT NULL DEFAULT 0,    -- all content is here and checked
      activation INTEGER,                     -- the order in which versions were put in use
      active INTEGER NOT NULL DEFAULT 0,
      asked INTEGER NOT NULL,                 -- the order of asking
      asked_at INTEGER NOT NULL,              -- milliseconds since 1970, as all times here
      completed_at INTEGER,
      kind TEXT, item TEXT, message TEXT,     -- why it waits or rests
      bytes_done INTEGER NOT NULL DEFAULT 0,
      items_done INTEGER NOT NULL DEFAULT 0,
      title TEXT NOT NULL, summary TEXT NOT NULL,
      items INTEGER NOT NULL, size INTEGER NOT NULL, priority INTEGER NOT NULL,
      after TEXT NOT NULL,
      manifest TEXT NOT NULL, manifest_size INTEGER NOT NULL,
      signature BLOB NOT NULL, signer BLOB NOT NULL,
      published_at INTEGER NOT NULL,
      published INTEGER,                      -- in the catalogue, if it differs: MissionRow.alias
      PRIMARY KEY(mission, version)
    ) WITHOUT ROWID;
    CREATE TABLE manifests(
      mission TEXT NOT NULL,
      version INTEGER NOT NULL,
      document BLOB NOT NULL,
      PRIMARY KEY(mission, version)
    );
    CREATE TABLE files(                       -- the files of a version (SPEC.md §20)
      mission TEXT NOT NULL,
      version INTEGER NOT NULL,
      place INTEGER NOT NULL,
      path TEXT NOT NULL,
      kind TEXT NOT NULL,
      media_type TEXT NOT NULL,
      size INTEGER NOT NULL,
      hash BLOB NOT NULL,
      url TEXT,                               -- the original address
      address TEXT,                           -- the same, as it is looked up
      local_path TEXT,
      completed_at INTEGER,
      PRIMARY KEY(mission, version, place)
    ) WITHOUT ROWID;
    CREATE INDEX files_hash ON files(hash);
    CREATE INDEX files_address ON files(address) WHERE address IS NOT NULL;
    CREATE TABLE objects(                     -- complete content
      hash BLOB PRIMARY KEY,
      size INTEGER NOT NULL,
      durable INTEGER NOT NULL,
      at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE chunks(                      -- where a chunk is found again
      hash BLOB NOT NULL,
      object BLOB NOT NULL,
      offset INTEGER NOT NULL,
      length INTEGER NOT NULL,
      PRIMARY KEY(hash, object, offset)
    ) WITHOUT ROWID;
    CREATE INDEX chunks_object ON chunks(object);
    CREATE TABLE partials(                    -- content that is being fetched
      hash BLOB PRIMARY KEY,
      map BLOB NOT NULL
    );
    CREATE TABLE endings(                     -- missions that are gone, and why
      mission TEXT PRIMARY KEY,
      version INTEGER NOT NULL,
      title TEXT NOT NULL,
      state TEXT NOT NULL,
      kind TEXT NOT NULL, item TEXT, message TEXT NOT NULL,
      at INTEGER NOT NULL,
      published INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE signers(
      signer BLOB PRIMARY KEY,
      at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE settings(
      name TEXT PRIMARY KEY,
      value BLOB NOT NULL
    ) WITHOUT ROWID;
    """

  private static let bundles = """
    CREATE TABLE bundles(
      name TEXT PRIMARY KEY,
      active TEXT, active_manifest BLOB,      -- the version in use
      confirmed INTEGER NOT NULL              -- its page has reported that it works
    ) WITHOUT ROWID;
    CREATE TABLE formers(       -- good versions before it
      name TEXT NOT NULL,
      place INTEGER NOT NULL,                 -- the last one first
      version TEXT NOT NULL,
      manifest BLOB NOT NULL,
      PRIMARY KEY(name, place)
    ) WITHOUT ROWID;
    CREATE TABLE outcomes(
      name TEXT NOT NULL,
      place INTEGER NOT NULL,                 -- the oldest first
      version TEXT NOT NULL,
      manifest BLOB NOT NULL,
      failure TEXT,                           -- NULL for a success
      blocked INTEGER NOT NULL,
      number INTEGER NOT NULL,                -- rises with the places
      reported INTEGER NOT NULL,
      PRIMARY KEY(name, place)
    ) WITHOUT ROWID;
    """

  private static let downloads = """
    CREATE TABLE downloads(
      number INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of addition
      id TEXT NOT NULL UNIQUE,
      request BLOB NOT NULL,                     -- JSON
      path TEXT NOT NULL,
      size INTEGER, hash BLOB,                   -- as required
      size_max INTEGER NOT NULL,
      user_info BLOB,                            -- JSON
      priority INTEGER NOT NULL,
      after BLOB NOT NULL,                       -- JSON
      state TEXT NOT NULL,
      kind TEXT, message TEXT,                   -- why it waits, is paused or failed
      map BLOB,
      bytes_done INTEGER NOT NULL DEFAULT 0,
      bytes_total INTEGER,
      file_size INTEGER, file_hash BLOB,         -- set before the file gets its name
      file_parts BLOB                            -- the hashes of its parts, one after another
    );
    """

  /// Missions composed by the app.
  private static let drafts = """
    CREATE TABLE drafts(
      number INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of addition
      mission TEXT NOT NULL,
      document BLOB NOT NULL,                    -- JSON
      payload BLOB,                              -- JSON
      state TEXT NOT NULL,
      kind TEXT, item TEXT, message TEXT,        -- why it is paused or failed
      seal BLOB NOT NULL,                        -- a proof of the key
      at INTEGER NOT NULL                        -- milliseconds since 1970
    );
    """
}
