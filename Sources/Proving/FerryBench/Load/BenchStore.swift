import FerryLaboratory
import FerryPostgres
import Foundation

/// A store made by `ferryd` for a benchmark, to be measured in bytes.
enum BenchStore {
  /// The embedded store's data directory.
  case embedded(directory: String)
  /// A separate database on the private cluster.
  case postgres(String)

  /// `ferryd`'s options for it.
  var arguments: [String] {
    switch self {
    case .embedded(let directory): ["--data", directory]
    case .postgres(let url): ["--database", url]
    }
  }

  /// Returns the bytes of all files, or of all tables with their indexes.
  func bytes() async throws -> Double {
    switch self {
    case .embedded(let directory):
      let files = FileManager.default
      return try files.contentsOfDirectory(atPath: directory).reduce(0) { sum, file in
        let size = try files.attributesOfItem(atPath: "\(directory)/\(file)")[.size]
        return sum + Double(size as? Int ?? 0)
      }
    case .postgres(let url):
      let pool = try PostgresPool(url: url, connections: 1)
      let bytes = try await pool.run { connection in
        try connection.query(
          .once(
            """
            SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            """))[0].int8(0)
      }
      await pool.close()
      return Double(bytes)
    }
  }

  /// Runs a `ferryd space` command on it, beside a server.
  func space(_ command: [String]) async throws {
    let ended = try await ChildProcess.run(
      try Executables.ferryd(), ["space"] + command + arguments)
    guard ended.status == .exited(0) else { throw BenchError(ended.error) }
  }
}
