import FerryPostgres
import FerryProtocol
import Foundation

/// The minimum of libpq's work for Ferry's data. The tables, columns, keys and durability are the
/// same. It writes arrays encoded beforehand, one round trip a transaction.
struct RawStore: Sendable {
  private let pool: PostgresPool

  /// Makes the tables in an empty database.
  init(database: String, connections: Int) async throws {
    pool = try PostgresPool(url: database, connections: connections)
    try await pool.run { connection in try connection.execute(Self.schema) }
  }

  /// Commits one batch after another on a connection of each space; returns the seconds.
  func commit(_ spaces: [[RawBatch]]) async throws -> Double {
    let watch = Stopwatch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for batches in spaces {
        group.addTask {
          try await pool.run { connection in
            for batch in batches { try batch.commit(on: connection) }
          }
        }
      }
      try await group.waitForAll()
    }
    return watch.seconds
  }

  /// Commits single rows until the time is over; returns the number.
  func commitRows(for seconds: Double) async throws -> Int {
    try await pool.run { connection in
      let watch = Stopwatch()
      var count = 0
      while watch.seconds < seconds {
        let id = UUID()
        _ = try connection.query(
          PostgresStatement("raw_row", "INSERT INTO raw_rows(id, data) VALUES ($1, $2)"),
          [.uuid(id), .text("a row of about the size of a small operation: \(id)")])
        count += 1
      }
      return count
    }
  }

  /// Reads all records of a space in pages, in their order, and touches every value. Returns the
  /// number of rows and of bytes.
  func readAll(space: Int64, page: Int64) async throws -> (rows: Int, bytes: Int) {
    try await pool.run { connection in
      var (rows, bytes) = (0, 0)
      var last: Int64 = 0
      while true {
        let found = try connection.query(
          Self.pageStatement, [.int8(space), .int8(last), .int8(page)])
        for row in found {
          last = try row.int8(0)
          for column in 1...3 { bytes += try row.bytes(column) { $0.count } }
        }
        rows += found.count
        if found.count < Int(page) { return (rows, bytes) }
      }
    }
  }

  /// Brings statistics and visibility up to date, as autovacuum does in time.
  func vacuum() async throws {
    try await pool.run { connection in try connection.execute("VACUUM (ANALYZE)") }
  }

  /// Does the same for another database.
  static func vacuum(database: String) async throws {
    let pool = try PostgresPool(url: database, connections: 1)
    try await pool.run { connection in try connection.execute("VACUUM (ANALYZE)") }
    await pool.close()
  }

  private static let pageStatement = PostgresStatement(
    "raw_page",
    """
    SELECT sequence, tbl, record, state, whole_below FROM raw_records
    WHERE space = $1 AND sequence > $2 ORDER BY sequence LIMIT $3
    """)

  private static let schema = """
    CREATE TABLE raw_spaces(id bigint PRIMARY KEY, head bigint NOT NULL);
    INSERT INTO raw_spaces SELECT number, 0 FROM generate_series(1, 16) AS number;
    CREATE TABLE raw_operations(
      space bigint NOT NULL, id uuid NOT NULL, sequence bigint NOT NULL, device uuid NOT NULL,
      tbl text COLLATE "C" NOT NULL, record text COLLATE "C" NOT NULL, kind smallint NOT NULL,
      time bigint NOT NULL, base bigint NOT NULL, data text, times text, outcome text,
      PRIMARY KEY (space, id));
    CREATE TABLE raw_records(
      space bigint NOT NULL, tbl text COLLATE "C" NOT NULL, record text COLLATE "C" NOT NULL,
      sequence bigint NOT NULL, whole_below bigint NOT NULL, state text NOT NULL,
      PRIMARY KEY (space, tbl, record));
    CREATE UNIQUE INDEX raw_records_sequence ON raw_records(space, sequence);
    CREATE TABLE raw_rows(id uuid PRIMARY KEY, data text NOT NULL);
    """
}
