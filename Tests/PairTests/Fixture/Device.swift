import Ferry
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// A replica's file, worked on by `ferry` processes and by this one.
struct Device: Sendable {
  /// The space of most tests.
  static let space = "demo"
  /// The table of most tests.
  static let notes = "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER)"

  let directory: TemporaryDirectory
  let path: String

  /// Creates a new file.
  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("replica.db").path
  }

  /// Names a file made by a program in a directory.
  init(_ name: String, in directory: TemporaryDirectory) {
    (self.directory, path) = (directory, directory.file(name).path)
  }

  /// Makes a replica with tracked tables, joined to a space.
  static func joined(
    _ url: String, space: String = Device.space, token: String? = nil,
    schema: String = Device.notes, tracking tables: [String] = ["notes"]
  ) async throws -> Device {
    let device = try Device()
    let replica = try await device.open()
    try await replica.write { try $0.execute(schema) }
    try await replica.track(tables.map { Name($0) })
    try await replica.connect(to: url, space: space, token: token)
    return device
  }

  /// Opens the file with the library.
  func open() async throws -> Replica { try await Replica.open(path) }

  // MARK: In this process

  /// Runs one transaction.
  func write(_ sql: String, _ parameters: [Value] = []) async throws {
    try await open().write { _ = try $0.execute(sql, parameters) }
  }

  /// Writes to Ferry's own tables, like a program that does not know them.
  func tamper(_ sql: String) async throws {
    try await open().write { try $0.connection.execute(sql) }
  }

  /// Copies the file as a backup tool does, while no process writes.
  func copy(to other: Device) throws {
    // The log goes with the last connection, which may close meanwhile; the file has all then.
    let log = try? Data(contentsOf: URL(filePath: path + "-wal"))
    try FileManager.default.copyItem(atPath: path, toPath: other.path)
    try log?.write(to: URL(filePath: other.path + "-wal"))
  }

  /// Returns the rows of a query, from one snapshot.
  func rows(_ sql: String = "SELECT * FROM notes ORDER BY id") async throws -> [[Value]] {
    try await open().read { try $0.query(sql).map(\.values) }
  }

  /// Returns the first value of the first row.
  func value(_ sql: String) async throws -> Value? { try await rows(sql).first?.first }

  func count(_ table: String = "notes") async throws -> Int64 {
    guard case .integer(let count)? = try await value("SELECT count(*) FROM \(table)") else {
      return -1
    }
    return count
  }

  func status() async throws -> ReplicaStatus { try await open().status() }

  // MARK: On the command line

  /// Runs `ferry` on the file to the end of the process.
  @discardableResult
  func ferry(
    _ arguments: String..., exits code: Int32 = 0, input: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      try Executables.ferry(), ["--replica", path] + arguments, directory: directory.url,
      input: input)
    #expect(
      finished.status == .exited(code), "\(arguments): \(finished.error)\(finished.output)",
      sourceLocation: sourceLocation)
    return finished
  }

  /// Starts `ferry` on the file.
  func start(_ arguments: String...) throws -> ChildProcess {
    try ChildProcess(
      try Executables.ferry(), ["--replica", path] + arguments, directory: directory.url)
  }

  /// Runs `ferry sync --json`, or `pull`, or `push`.
  @discardableResult
  func exchange(
    _ command: String = "sync", exits code: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ExchangeReport {
    let finished = try await ferry(
      command, "--json", exits: code, sourceLocation: sourceLocation)
    return try ExchangeReport(finished)
  }

  /// Runs `ferry sync`, whether rows are in quarantine or not.
  func exchangeAll(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let finished = try await ChildProcess.run(
      try Executables.ferry(), ["--replica", path, "sync"], directory: directory.url)
    #expect(
      [.exited(0), .exited(4)].contains(finished.status), "\(finished.error)",
      sourceLocation: sourceLocation)
  }
}

/// The final line of `ferry push|pull|sync --json`.
struct ExchangeReport: Decodable, Equatable {
  var pushed: Int
  var pulled: Int
  var duplicates: Int
  var buffered: Int
  var left: Int
  var refused: Int
  var quarantined: Int
  var conflicts: Int
  var cursor: String?

  init(_ finished: ChildProcess.Finished) throws {
    let lines = finished.output.split(separator: "\n")
    let last = try #require(lines.last, "\(finished.error)")
    self = try JSONDecoder().decode(ExchangeReport.self, from: Data(last.utf8))
  }
}

/// A line of a command's `--json` output.
struct JSONLine {
  let members: [String: Any]

  /// Returns all lines of an output.
  static func all(_ output: String) throws -> [JSONLine] {
    try output.split(separator: "\n").map { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
      return JSONLine(members: try #require(object as? [String: Any], "\(line)"))
    }
  }

  var names: Set<String> { Set(members.keys) }

  func text(_ name: String) -> String? { members[name] as? String }
  func number(_ name: String) -> Int? { members[name] as? Int }
  func object(_ name: String) -> JSONLine {
    JSONLine(members: members[name] as? [String: Any] ?? [:])
  }
}
