import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// A backup whose place others could write to.
@Suite("Changed backups", .hangLimit)
struct BackupTamperTests {
  @Test("an archive that was replaced with its hash is refused by the checksum of the backup")
  func archive() async throws {
    let fixture = try BackupFixture()
    let (server, _, _, store) = try await fixture.filled(.postgres)
    try await server.stop()
    let place = fixture.folder.file("backup")
    let made = try await fixture.ferryd(["backup", place.path, "--json"] + store)
    let report = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any]
    let checksum = try #require(report?["checksum"] as? String)
    try await fixture.ferryd(["restore", place.path, "--check", "--checksum", checksum] + store)

    // Any archive of pg_dump will do: pg_restore runs the SQL in it.
    let database = try PostgresCluster.shared().createDatabase()
    try PostgresConnection(url: database).execute("CREATE TABLE owned(n int)")
    let archive = place.appending(path: "store.dump")
    let dumped = try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"),
      ["pg_dump", "--format=custom", "--no-owner", "--file", archive.path, database])
    #expect(dumped.status == .exited(0), "\(dumped.error)")
    let manifest = place.appending(path: "backup.json")
    var parts = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: manifest)) as? [String: Any])
    let sum = try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"), ["sha256sum", archive.path])
    parts["storeFile"] = [
      "size": try Data(contentsOf: archive).count, "sha256": String(sum.output.prefix(64)),
    ]
    try JSONSerialization.data(withJSONObject: parts).write(to: manifest)

    let blobs = ["--blobs", fixture.folder.file("new").path]
    let target = try PostgresCluster.shared().createDatabase()
    let refused = try await fixture.ferryd(
      ["restore", place.path, "--checksum", checksum, "--database", target] + blobs, exits: 1)
    #expect(refused.error.contains("its checksum is another one"))
    #expect(try tables(target) == [])
    // Without the checksum, the hashes alone cannot tell.
    try await fixture.ferryd(["restore", place.path, "--database", target] + blobs)
    #expect(try tables(target) == ["owned"])
  }

  @Test(
    "a part that is a symbolic link is refused, wherever it leads, and nothing is restored",
    arguments: StoreKind.allCases)
  func links(kind: StoreKind) async throws {
    let fixture = try BackupFixture()
    let (server, _, blobs, store) = try await fixture.filled(kind)
    try await server.stop()
    let place = fixture.folder.file("backup")
    try await fixture.ferryd(["backup", place.path, "--blobs", blobs] + store)
    let parts = try FileManager.default.subpathsOfDirectory(atPath: place.path).filter {
      $0 != "content/incoming"
    }
    #expect(parts.contains("backup.json") && parts.contains("content"))
    let outside = fixture.folder.file("outside").path
    let target = fixture.folder.file("target").path
    let options = ["--data", target, "--blobs", target + "/blobs"]
    for name in parts {
      let part = place.path + "/" + name
      try FileManager.default.moveItem(atPath: part, toPath: outside)
      // The link leads to exactly the part's former bytes.
      try FileManager.default.createSymbolicLink(atPath: part, withDestinationPath: outside)
      for check in [[], ["--check"]] {
        let refused = try await fixture.ferryd(["restore", place.path] + check + options, exits: 1)
        #expect(refused.error.contains("\(name) is a symbolic link"), "\(name): \(refused.error)")
      }
      try FileManager.default.removeItem(atPath: part)
      try FileManager.default.moveItem(atPath: outside, toPath: part)
    }
    #expect(!FileManager.default.fileExists(atPath: target))
    let name = kind == .embedded ? "store.sqlite" : "store.dump"
    let file = place.path + "/" + name
    try FileManager.default.removeItem(atPath: file)
    #expect(mkfifo(file, 0o600) == 0)
    let refused = try await fixture.ferryd(["restore", place.path] + options, exits: 1)
    #expect(refused.error.contains("is not a regular file"), "\(refused.error)")
  }

  private func tables(_ database: String) throws -> [String] {
    try PostgresConnection(url: database).query(
      .once("SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    ).map { try $0.text(0) }
  }
}
