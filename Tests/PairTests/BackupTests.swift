import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// A server with notes and a mission, for backups.
struct BackupFixture {
  let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  @discardableResult
  func ferryd(
    _ arguments: [String], exits code: Int32 = 0, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      try Executables.ferryd(), arguments, directory: folder.url, input: "")
    #expect(
      finished.status == .exited(code), "\(arguments): \(finished.error)\(finished.output)",
      sourceLocation: sourceLocation)
    return finished
  }

  /// Makes a server with a device's notes and a mission.
  func filled(
    _ kind: StoreKind, film: [UInt8] = Array("a film".utf8)
  ) async throws -> (Server, Device, blobs: String, [String]) {
    let blobs = folder.file("blobs").path
    let server = try await Server.start(kind, "--blobs", blobs)
    let device = try await Device.joined(server.url)
    try await device.write(Sample.notes(200, "note"))
    try await device.exchange()
    let tour = folder.file("tour")
    try FileManager.default.createDirectory(at: tour, withIntermediateDirectories: true)
    try Data(film).write(to: tour.appending(path: "film.mp4"))
    let store =
      server.database.map { ["--database", $0] } ?? ["--data", server.directory.file("data").path]
    try await ferryd(
      ["mission", "publish", tour.path, "--space", Device.space, "--blobs", blobs] + store)
    return (server, device, blobs, store)
  }

  /// Returns the options of an empty store.
  func empty(_ kind: StoreKind) throws -> [String] {
    try kind == .postgres
      ? ["--database", PostgresCluster.shared().createDatabase()]
      : ["--data", folder.file("restored").path]
  }

  /// Starts a restored server in the place of the former one. Expects a device to get all rows and
  /// the mission.
  func expectRestored(
    _ server: Server, _ device: Device, _ arguments: [String], count: Int64
  ) async throws {
    let other = try ChildProcess(
      try Executables.ferryd(), ["serve", "--listen", "127.0.0.1:\(server.port)"] + arguments)
    _ = try await other.line { $0.contains("listening on http://") }
    // The device sends again what the backup does not have.
    try await device.exchange()
    let second = try Device()
    try await second.ferry("init", "--server", server.url, "--space", Device.space)
    try await second.exchange()
    try await second.ferry("track", "--create", "notes")
    let order = "SELECT id, body, n FROM notes ORDER BY id"
    #expect(try await second.rows(order) == device.rows(order))
    #expect(try await device.count() == count)
    try await second.ferry("mission", "download", "tour")
    let shown = try await second.ferry("mission", "show", "tour", "--json")
    #expect(shown.output.contains("film.mp4"))
    other.send(SIGTERM)
    _ = try await other.exitStatus()
  }
}

/// `ferryd backup` and `ferryd restore`, beside a server with ongoing writes.
@Suite("Backups", .hangLimit)
struct BackupTests {
  private let fixture: BackupFixture
  private var folder: TemporaryDirectory { fixture.folder }

  init() throws { fixture = try BackupFixture() }

  private var backup: String { folder.file("backup").path }

  /// Expects that only this user can read a folder and the files in it.
  private func expectPrivate(_ folder: String) throws {
    let manager = FileManager.default
    for name in try [""] + manager.contentsOfDirectory(atPath: folder) where name != "content" {
      let attributes = try manager.attributesOfItem(atPath: folder + "/" + name)
      let mode = try #require(attributes[.posixPermissions] as? Int)
      #expect(mode & 0o077 == 0, "\(name) has the mode \(String(mode, radix: 8))")
    }
  }

  @Test(
    "a store is backed up while devices write, and restored elsewhere",
    arguments: StoreKind.allCases)
  func roundTrip(kind: StoreKind) async throws {
    let (server, device, blobs, store) = try await fixture.filled(kind)
    let writing = Task {
      for number in 0..<10 {
        try await device.write(Sample.notes(20, "later-\(number)"))
        try await device.exchange()
      }
    }
    let made = try await fixture.ferryd(["backup", backup, "--blobs", blobs, "--json"] + store)
    try await writing.value
    #expect(try JSONLine.all(made.output).last?.text("event") == "backed up")
    #expect(try await fixture.ferryd(["restore", backup, "--check"]).output.hasPrefix("intact: "))
    try expectPrivate(backup)
    try await server.stop()

    let restoredBlobs = folder.file("restored-blobs").path
    let content = [
      "--blobs", restoredBlobs, "--mission-key", folder.file("restored-key.pem").path,
    ]
    let restored = try fixture.empty(kind)
    try await fixture.ferryd(["restore", backup] + content + restored)
    #expect(FileManager.default.fileExists(atPath: content[3]))
    try await fixture.expectRestored(server, device, content + restored, count: 400)
    // An existing store is never overwritten.
    let refused = try await fixture.ferryd(["restore", backup] + content + restored, exits: 1)
    #expect(refused.error.contains("a backup is restored into a new store only"))
  }

  @Test("a backup in a folder that others could read is for its owner alone")
  func mode() async throws {
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    try FileManager.default.createDirectory(
      atPath: backup, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    try await fixture.ferryd(["backup", backup, "--blobs", blobs] + store)
    let mode = try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions] as? Int
    #expect(mode == 0o700)
  }

  @Test("a restore beside the log of another store is refused")
  func foreignLog() async throws {
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    try await fixture.ferryd(["backup", backup, "--blobs", blobs] + store)
    let target = folder.file("target")
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    try Data("a log".utf8).write(to: target.appending(path: "ferry.sqlite-wal"))
    let refused = try await fixture.ferryd(
      ["restore", backup, "--data", target.path, "--blobs", blobs], exits: 1)
    #expect(refused.error.contains("has ferry.sqlite-wal, a part of another store"))
  }

  @Test(
    "a backup with a changed byte, without a part or unfinished is refused, and changes nothing")
  func damaged() async throws {
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    try await fixture.ferryd(["backup", backup, "--blobs", blobs] + store)
    let target = ["--data", folder.file("target").path]
    let parts = try FileManager.default.subpathsOfDirectory(atPath: backup).filter { name in
      name == "store.sqlite" || name.hasPrefix("content/") && name.count > 64
    }
    #expect(parts.count == 3)
    for name in parts {
      let file = URL(filePath: backup + "/" + name)
      let bytes = try Data(contentsOf: file)
      var changed = bytes
      changed[changed.startIndex + bytes.count / 2] ^= 1
      try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
      try changed.write(to: file)
      let found = try await fixture.ferryd(["restore", backup] + target, exits: 1)
      #expect(found.error.contains("is not as it was backed up"), "\(name)")
      try FileManager.default.removeItem(at: file)
      let missing = try await fixture.ferryd(["restore", backup] + target, exits: 1)
      #expect(missing.error.contains("the backup in \(backup) is damaged"), "\(name)")
      try bytes.write(to: file)
    }
    let list = URL(filePath: backup + "/backup.json")
    let text = try String(contentsOf: list, encoding: .utf8)
    for (from, to) in [
      ("\"format\" : 1", "\"format\" : 2"), ("\"sha256\" : \"", "\"sha256\" : \"../"),
    ] {
      try text.replacingOccurrences(of: from, with: to).write(
        to: list, atomically: true, encoding: .utf8)
      let found = try await fixture.ferryd(["restore", backup] + target, exits: 1)
      #expect(found.error.contains("is damaged"))
    }
    try FileManager.default.removeItem(at: list)
    let unfinished = try await fixture.ferryd(["restore", backup] + target, exits: 1)
    #expect(unfinished.error.contains("is no backup"))
    #expect(!FileManager.default.fileExists(atPath: target[1]))
    let filled = try await fixture.ferryd(["backup", backup, "--blobs", blobs] + store, exits: 1)
    #expect(filled.error.contains("is not empty"))
  }
}
