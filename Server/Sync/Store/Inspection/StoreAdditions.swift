/// The tables that both stores have for administrators only.
///
/// They hold observations, no data of users: a store without them is complete. So they are added to
/// a store that lacks them, and the format of the data stays the same (``StoreFormat``).
enum StoreAdditions {
  /// The table that is created last: a store that has it has all of them.
  static let lastTable = "space_activity"

  /// Returns the statements that create the tables.
  ///
  /// - Parameter text: The type of texts that compare by their bytes.
  static func tables(text: String) -> String {
    """
    -- The last contact of each device. `reached` is the place up to which it knows the changes.
    CREATE TABLE device_sightings(
      space bigint NOT NULL,
      device \(text) NOT NULL,
      seen_at bigint NOT NULL,
      reached bigint,
      client \(text),
      principal \(text) NOT NULL,
      PRIMARY KEY(space, device)
    );
    CREATE INDEX device_sightings_by_age ON device_sightings(space, seen_at);
    -- Packets and operations that were refused. `subject` is the operation, or the kind of fault
    -- and its sender.
    CREATE TABLE rejections(
      space bigint NOT NULL,
      subject \(text) NOT NULL,
      first_at bigint NOT NULL,
      last_at bigint NOT NULL,
      times bigint NOT NULL,
      code \(text) NOT NULL,
      detail \(text) NOT NULL,
      principal \(text) NOT NULL,
      device \(text),
      tbl \(text),
      record \(text),
      PRIMARY KEY(space, subject)
    );
    CREATE INDEX rejections_by_time ON rejections(space, last_at, subject);
    -- Counts of a minute or an hour; `unit` is the length in milliseconds.
    CREATE TABLE space_activity(
      space bigint NOT NULL,
      unit bigint NOT NULL,
      at bigint NOT NULL,
      operations bigint NOT NULL,
      conflicts bigint NOT NULL,
      rejected bigint NOT NULL,
      PRIMARY KEY(space, unit, at)
    );
    """
  }
}
