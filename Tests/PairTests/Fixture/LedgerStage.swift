import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// A place where programs write rows for a space: the file of a device, or the tables of a mirror.
enum LedgerKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case device
  case mirror

  var testDescription: String { rawValue }
}

/// A place with a ledger, beside another device of the same space.
struct LedgerStage: Sendable {
  static let sql = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, name TEXT);
    CREATE TABLE notes(id TEXT PRIMARY KEY NOT NULL, body TEXT, n INTEGER,
      list TEXT REFERENCES lists(id) ON DELETE CASCADE);
    """
  private static let tables = ["lists", "notes"]

  let kind: LedgerKind
  let server: Server
  /// Between the place and the server.
  let proxy: TCPProxy
  let other: Device
  /// The replica with the ledger.
  let replica: Device
  /// The head of the space when both sides had the same.
  private let begun: Int64
  private let database: String
  private let mirrors: TemporaryDirectory

  /// Makes a place joined to the space, with rows present on both sides.
  ///
  /// - Parameter change: gives the space's schema rules.
  static func make(
    _ kind: LedgerKind, rows: String = "", change: (inout SpaceSchema) -> Void = { _ in }
  ) async throws -> LedgerStage {
    let server = try await Server.start()
    let proxy = try TCPProxy(to: server.port)
    let other = try await Device.joined(server.url, schema: sql, tracking: tables)
    try await other.ferry("schema", "publish")
    let author = try await other.open()
    var schema = try await author.schema()
    change(&schema)
    schema.version += 1
    _ = try await author.applySchema(schema)
    try await other.write(rows.isEmpty ? "SELECT 1" : rows)
    try await other.exchange()
    let (mirrors, begun) = (try TemporaryDirectory(), try await server.head())
    let (replica, database): (Device, String)
    switch kind {
    case .device:
      replica = try await Device.joined(proxy.url, schema: sql, tracking: tables)
      database = ""
    case .mirror:
      replica = Device("crm/replica.db", in: mirrors)
      database = try await Server.database()
      let made = try await ChildProcess.run(
        try Executables.ferryd(),
        [
          "mirror", "add", "crm", "--server", proxy.url, "--space", Device.space, "--database",
          database, "--mirrors", mirrors.url.path,
        ])
      try #require(made.status == .exited(0), "\(made.error)")
    }
    let stage = LedgerStage(
      kind: kind, server: server, proxy: proxy, other: other, replica: replica, begun: begun,
      database: database, mirrors: mirrors)
    try await stage.exchange()
    return stage
  }

  // MARK: The program

  /// Makes one transaction of a program.
  func write(_ sql: String) async throws {
    switch kind {
    case .device: try await replica.write(sql)
    case .mirror: try connection().execute(sql)
    }
  }

  /// Makes the writes captured by PostgreSQL a minute older. A mirror knows their times only to the
  /// length of a query, and another write may follow at once.
  func moveCapturedBack() throws {
    guard kind == .mirror else { return }
    try connection().execute("UPDATE ferry_mirror.captured SET at = at - interval '1 minute'")
  }

  /// Makes a transaction, and rolls it back.
  func writeInVain(_ sql: String) async throws {
    struct RolledBack: Error {}
    do {
      switch kind {
      case .device:
        try await replica.open().write {
          _ = try $0.execute(sql)
          throw RolledBack()
        }
      case .mirror:
        try connection().transaction {
          try $0.execute(sql)
          throw RolledBack()
        }
      }
    } catch is RolledBack {}
  }

  /// Returns all rows of the tables as texts.
  func rows() async throws -> [[String?]] {
    switch kind {
    case .device: return try await Self.rows(of: replica)
    case .mirror:
      let connection = try connection()
      return try Self.queries.flatMap { query in
        let found = try connection.query(.once(query))
        return try found.map { row in
          try (0..<found.columnCount).map { try row.ifPresent($0, as: String.self) }
        }
      }
    }
  }

  private static let queries = [
    "SELECT id, name FROM lists ORDER BY id",
    "SELECT id, body, CAST(n AS text), list FROM notes ORDER BY id",
  ]

  private static func rows(of device: Device) async throws -> [[String?]] {
    var rows: [[String?]] = []
    for query in queries {
      rows += try await device.rows(query).map { row in
        row.map { value in
          if case .text(let text) = value { text } else { nil }
        }
      }
    }
    return rows
  }

  private func connection() throws -> PostgresConnection {
    // A busy machine may take longer than the default limit.
    try PostgresConnection(
      url: database + (database.contains("?") ? "&" : "?") + "connect_timeout=600")
  }

  // MARK: The exchange

  /// The command for one exchange of all pending rows.
  var exchangeCommand: (program: URL, arguments: [String]) {
    get throws {
      switch kind {
      case .device: (try Executables.ferry(), ["--replica", replica.path, "sync"])
      case .mirror:
        (try Executables.ferryd(), ["mirror", "verify", "crm", "--mirrors", mirrors.url.path])
      }
    }
  }

  /// Exchanges all pending rows between the place and the space. A mirror sends first and gets the
  /// answer's rows with the next step.
  func exchange(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    for _ in 1...2 {
      let (program, arguments) = try exchangeCommand
      let finished = try await ChildProcess.run(program, arguments)
      // `ferry sync` reports questions and rejected writes with 4.
      #expect(
        finished.status == .exited(0) || finished.status == .exited(4),
        "\(finished.error)\(finished.output)", sourceLocation: sourceLocation)
    }
  }

  /// Exchanges until both sides have everything. Checks that they have the same rows, and that
  /// nothing is left.
  ///
  /// - Parameter operations: the operations received by the space since ``make(_:rows:change:)``.
  func expectSettled(
    _ rows: [[String?]]? = nil, operations: Int64,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for _ in 1...2 {
      try await exchange(sourceLocation: sourceLocation)
      _ = try await other.open().sync()
    }
    let gained = try await server.head() - begun
    #expect(gained == operations, sourceLocation: sourceLocation)
    let (here, there) = (try await self.rows(), try await Self.rows(of: other))
    #expect(here == there, sourceLocation: sourceLocation)
    if let rows { #expect(here == rows, sourceLocation: sourceLocation) }
    let status = try await replica.status()
    #expect(status.pending == 0 && status.toApply == 0, sourceLocation: sourceLocation)
    if kind == .mirror {
      let left = try connection().query(.once("SELECT FROM ferry_mirror.captured LIMIT 1"))
      #expect(left.isEmpty, sourceLocation: sourceLocation)
    }
  }

  /// The values lost in conflicts, from the place's ledger.
  func lost() async throws -> [Value] {
    try await replica.open().conflicts().compactMap(\.conflict.lost)
  }
}
