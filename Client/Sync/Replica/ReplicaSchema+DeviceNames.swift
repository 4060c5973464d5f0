extension ReplicaSchema {
  /// The names of this device and of the devices in conflicts (SPEC.md §30).
  static let deviceNames = """
    CREATE TABLE ferry_own_name(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      name TEXT,                              -- this device's name
      sent_as BLOB, sent TEXT,                -- the name that the server has, for which identifier
      refused INTEGER NOT NULL DEFAULT 0,     -- the server refused the name
      changes INTEGER NOT NULL DEFAULT 0      -- how often names in the space have changed
    );
    INSERT INTO ferry_own_name(one) VALUES (1);
    CREATE TABLE ferry_device_names(          -- devices in conflicts
      device BLOB PRIMARY KEY,
      name TEXT,                              -- as the server answered; NULL: none
      is_current INTEGER NOT NULL DEFAULT 0   -- no name has changed since then
    ) WITHOUT ROWID;
    """
}
