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

    // Any archive of pg_dump will do: pg_restore runs its SQL.
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

  private func tables(_ database: String) throws -> [String] {
    try PostgresConnection(url: database).query(
      .once("SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    ).map { try $0.text(0) }
  }
}
