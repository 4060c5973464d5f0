import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Mirrors whose making or end is disturbed: a command can remove everything left of them.
@Suite("The making of mirrors", .hangLimit)
struct MirrorMakingTests {
  private typealias Stage = MirrorTests.Stage

  private static let add = ["add", "crm", "--schema", "app"]

  /// A server with tokens, and a device with published tables.
  private static func stage() async throws -> (stage: Stage, writer: String) {
    let server = try await Server.start()
    let admin = try await server.token("admin")
    let device = try await Device.joined(
      server.url, token: admin, schema: MirrorTests.schema, tracking: ["lists", "tasks", "seats"])
    try await device.ferry("schema", "publish")
    try await device.exchange()
    let stage = Stage(
      server: server, device: device, database: try await Server.database(),
      mirrors: try TemporaryDirectory())
    return (stage, try await server.token("writer"))
  }

  private static func options(_ stage: Stage, _ token: String) -> [String] {
    add + [
      "--server", stage.server.url, "--space", Device.space, "--database", stage.database,
      "--token",
      token,
    ]
  }

  private func entries(_ stage: Stage) throws -> [[String?]] {
    try stage.rows(
      "SELECT CASE WHEN to_regclass('ferry_mirror.mirrors') IS NULL THEN 'none' ELSE 'ledger' END")
      == [["none"]] ? [] : try stage.rows("SELECT name FROM ferry_mirror.mirrors")
  }

  @Test("an addition that is killed before or after its commit is gone on with")
  func killed() async throws {
    let (stage, token) = try await Self.stage()
    let options = Self.options(stage, token)
    let start = {
      try ChildProcess(
        try Executables.ferryd(), ["mirror"] + options + ["--mirrors", stage.mirrors.url.path],
        directory: stage.mirrors.url)
    }
    // The mirror waits for this lock before its entry.
    let lock = try PostgresConnection(url: stage.database)
    try lock.execute("BEGIN")
    try lock.execute("SELECT pg_advisory_xact_lock(7310593)")
    let first = try start()
    try await eventually("it waits") {
      try stage.rows(
        """
        SELECT 1::text FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()
        """) == [["1"]]
    }
    first.send(SIGKILL)
    _ = try await first.exitStatus()
    try lock.execute("COMMIT")
    let unfinished = try await stage.mirror(["status", "crm"], exits: 1)
    #expect(unfinished.error.contains("the database has no mirror crm"))
    // It is killed as soon as it has committed.
    let second = try start()
    try await eventually("it has committed") { try entries(stage) == [["crm"]] }
    second.send(SIGKILL)
    _ = try await second.exitStatus()
    try await stage.mirror(["status", "crm"])
    try await stage.mirror(options)
    try await stage.mirror(["remove", "crm"])
    #expect(try entries(stage) == [])
    #expect(
      try stage.rows("SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'ferry%'") == [])
  }

  @Test("a mirror without an entry, and one without its folder, can be removed")
  func removed() async throws {
    let (stage, token) = try await Self.stage()
    let options = Self.options(stage, token)
    try await stage.mirror(options)
    let folder = stage.mirrors.url.appending(path: "crm").path
    // The settings may have a password.
    for (name, mode) in [("", 0o700), ("/mirror.json", 0o600), ("/replica.db-token", 0o600)] {
      let attributes = try FileManager.default.attributesOfItem(atPath: folder + name)
      #expect(attributes[.posixPermissions] as? Int == mode, "\(name)")
    }
    try FileManager.default.removeItem(at: stage.mirrors.url.appending(path: "crm"))
    let taken = try await stage.mirror(options, exits: 1)
    #expect(taken.error.contains("the database has a mirror crm already"))
    #expect(try entries(stage) == [["crm"]])
    try await stage.mirror(["remove", "crm"], exits: 1)
    try await stage.mirror(["remove", "crm", "--database", stage.database])
    #expect(try entries(stage) == [])
    let unknown = try await stage.mirror(
      ["remove", "crm", "--database", stage.database], exits: 1)
    #expect(unknown.error.contains("the database has no mirror and no group crm"))
    // The other way around: the database was restored from a backup of before.
    try await stage.mirror(options)
    try stage.sql("DELETE FROM ferry_mirror.mirrors")
    try await stage.mirror(["remove", "crm"])
    #expect(!FileManager.default.fileExists(atPath: stage.mirrors.url.path + "/crm"))
  }

  @Test("a revoked token leaves no entry behind, and a mirror gets another token")
  func revoked() async throws {
    let (stage, token) = try await Self.stage()
    try await stage.mirror(Self.options(stage, token))
    let revoked = try await stage.server.ferryd("token", "revoke", token)
    #expect(revoked.status == .exited(0), "\(revoked.error)")
    // Nothing of a refused mirror is left.
    var other = Self.options(stage, token)
    other[1] = "two"
    try await eventually("the server refuses the token") {
      let refused = try await ChildProcess.run(
        try Executables.ferryd(), ["mirror"] + other + ["--mirrors", stage.mirrors.url.path],
        directory: stage.mirrors.url, input: "")
      if refused.status == .exited(0) { try await stage.mirror(["remove", "two"]) }
      return refused.status == .exited(1)
    }
    #expect(try entries(stage) == [["crm"]])
    #expect(!FileManager.default.fileExists(atPath: stage.mirrors.url.path + "/two"))
    // The mirror goes on with another token.
    try stage.sql("INSERT INTO app.lists VALUES ('l', 'home')")
    try await stage.mirror(Self.options(stage, try await stage.server.token("writer")))
    let run = try stage.run()
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT name FROM lists") == [["home"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    // Neither a token nor the server is needed to remove it.
    try await stage.server.kill()
    try await stage.mirror(["remove", "crm"])
    #expect(try entries(stage) == [])
  }
}
