import FerryPlatform
import FerryPostgres
import Foundation

/// A database as an archive of `pg_dump`. All calls block.
struct PostgresArchive {
  /// The URL without the password, which other users of this machine could see.
  private let url: String
  private let password: String?
  private let whole: String

  init(url: String) {
    whole = url
    var parts = URLComponents(string: url)
    password = parts?.password
    parts?.password = nil
    self.url = parts?.string ?? url
  }

  /// Writes one consistent state of the database.
  func dump(to path: String) throws {
    try checkIsWhole()
    try run("pg_dump", ["--format=custom", "--no-owner", "--file", path, url])
  }

  /// Restores everything, or nothing.
  func restore(from file: FileHandle) throws {
    try run(
      "pg_restore", ["--single-transaction", "--exit-on-error", "--no-owner", "--dbname", url],
      input: file)
  }

  /// Throws if Citus has the rows: pg_dump reads each worker at another moment.
  private func checkIsWhole() throws {
    let connection = try PostgresConnection(url: whole)
    let extensions = try connection.query(
      .once("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"))
    guard try extensions[0].bool(0) else { return }
    let tables = try connection.query(
      .once("SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('spaces')"))
    if tables.isEmpty { return }
    throw BackupError(
      what: "the store is not backed up", why: "Citus has it on several servers",
      next: "back up all servers up to one point, see Documentation/operations.md#citus")
  }

  /// Throws if the database has tables.
  func checkIsEmpty() throws {
    let connection = try PostgresConnection(url: whole)
    let tables = try connection.query(
      .once(
        """
        SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%'
          AND n.nspname <> 'information_schema' LIMIT 1
        """))
    guard let table = try tables.first?.text(0) else { return }
    throw BackupError(
      what: "a backup is restored into a new store only", why: "the database has a table \(table)",
      next: "create an empty database")
  }

  private func run(
    _ program: String, _ arguments: [String], input: FileHandle = .nullDevice
  ) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    var environment = ProcessInfo.processInfo.environment
    if let password { environment["PGPASSWORD"] = password.removingPercentEncoding ?? password }
    process.environment = environment
    let errors = Pipe()
    process.standardError = errors
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    let text = String(
      decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus != 0 else { return }
    let isMissing = process.terminationStatus == 127
    throw BackupError(
      what: "\(program) failed",
      why: isMissing
        ? "it is not installed" : text.words(at: "\n").last.map(String.init) ?? "",
      next: isMissing
        ? "install PostgreSQL's client programs (Debian: postgresql-client)"
        : "check --database; \(program) has to be as new as the server")
  }
}
