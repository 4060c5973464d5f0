/// The store's tables on several PostgreSQL servers, by the extension Citus.
///
/// It sends each statement of a space to the one worker that has all rows of this space.
enum PostgresDistribution {
  /// The tables that are distributed by the space, each with the column that holds it. The rows of
  /// one space are on one worker.
  static let columns: [String: String] = {
    var columns = ["spaces": "id"]
    for table in [
      "operations", "records", "head_times", "timelines", "devices", "buffered", "usage",
      "notices", "unique_keys", "record_digests", "leaf_digests", "digest_states", "missions",
      "mission_blobs",
    ] + StoreAdditions.all.map(\.name) {
      columns[table] = "space"
    }
    return columns
  }()

  /// The small tables, which each server has whole.
  static let copied = [
    "ferry_schema", "meta", "space_names", "access_tokens", "token_secrets", "audit",
  ]
}
