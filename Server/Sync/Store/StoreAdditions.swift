import FerryPlatform

/// The tables missing in stores from earlier versions of ferryd.
///
/// They hold observations and reports, no data of users: a store without them is complete. So each
/// is added to a store without it, and the format of the data stays the same (``StoreFormat``).
/// Both stores have the same tables.
enum StoreAdditions {
  /// A table with all indexes.
  struct Table: Sendable {
    let name: String
    /// The members between the parentheses; `TEXT` stands for the type of texts.
    fileprivate let columns: String
    fileprivate var indexes: [String] = []

    /// Returns the statements that create the table.
    ///
    /// - Parameter text: The type of texts compared by their bytes.
    func sql(text: String) -> String {
      let columns = columns.replacing(bytes: "TEXT", with: text)
      return (["CREATE TABLE \(name)(\n\(columns)\n)"] + indexes).joined(separator: ";\n")
    }
  }

  static let all = [sightings, rejections, activity, bundleReports, bundleCounts]

  /// The last contact of each device. `reached` is the place up to which it knows the changes.
  private static let sightings = Table(
    name: "device_sightings",
    columns: """
        space bigint NOT NULL,
        device TEXT NOT NULL,
        seen_at bigint NOT NULL,
        reached bigint,
        client TEXT,
        principal TEXT NOT NULL,
        PRIMARY KEY(space, device)
      """,
    indexes: ["CREATE INDEX device_sightings_by_age ON device_sightings(space, seen_at)"])

  /// Refused packets and operations. `subject` is the operation, or the kind of fault and the
  /// sender.
  private static let rejections = Table(
    name: "rejections",
    columns: """
        space bigint NOT NULL,
        subject TEXT NOT NULL,
        first_at bigint NOT NULL,
        last_at bigint NOT NULL,
        times bigint NOT NULL,
        code TEXT NOT NULL,
        detail TEXT NOT NULL,
        principal TEXT NOT NULL,
        device TEXT,
        tbl TEXT,
        record TEXT,
        PRIMARY KEY(space, subject)
      """,
    indexes: ["CREATE INDEX rejections_by_time ON rejections(space, last_at, subject)"])

  /// Counts of a minute or an hour; `unit` is the length in milliseconds.
  private static let activity = Table(
    name: "space_activity",
    columns: """
        space bigint NOT NULL,
        unit bigint NOT NULL,
        at bigint NOT NULL,
        operations bigint NOT NULL,
        conflicts bigint NOT NULL,
        rejected bigint NOT NULL,
        PRIMARY KEY(space, unit, at)
      """)

  /// The newest report of each device about a version of a bundle.
  private static let bundleReports = Table(
    name: "bundle_reports",
    columns: """
        space bigint NOT NULL,
        mission TEXT NOT NULL,
        device TEXT NOT NULL,
        principal TEXT NOT NULL,
        account TEXT NOT NULL,
        number bigint NOT NULL,
        failed bigint NOT NULL,
        reason TEXT,
        at bigint NOT NULL,
        PRIMARY KEY(space, mission, device)
      """,
    indexes: [
      """
      CREATE INDEX bundle_reports_failed ON bundle_reports(space, mission, at DESC, device)
        WHERE failed = 1
      """
    ])

  /// The devices that reported about a version of a bundle: those of each account, and all of them
  /// under an empty account.
  private static let bundleCounts = Table(
    name: "bundle_counts",
    columns: """
        space bigint NOT NULL,
        mission TEXT NOT NULL,
        account TEXT NOT NULL,
        successes bigint NOT NULL,
        failures bigint NOT NULL,
        PRIMARY KEY(space, mission, account)
      """)
}
