import Ferry
import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// `ferryd backup` and `ferryd restore` with a bucket of a real S3-compatible store.
@Suite(
  "Backups in buckets",
  .enabled(if: ObjectStoreServer.isAvailable, "\(ObjectStoreServer.skipReason)"), .hangLimit)
struct BucketBackupTests {
  private let fixture: BackupFixture
  private let objects: ObjectStoreServer
  private let bucket: String
  /// More than a part of an object sent in parts.
  private let film = (0..<(20 << 20)).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 11) }

  init() async throws {
    fixture = try BackupFixture()
    objects = try await ObjectStoreServer.forAll()
    bucket = try await objects.bucket()
    try ObjectStoreServer.write(ObjectStoreServer.key, to: fixture.folder.file("credentials"))
  }

  private var place: String { "s3://\(bucket)/ferry/monday" }

  private var access: [String] {
    [
      "--backup-endpoint", objects.endpoint, "--backup-credentials",
      fixture.folder.file("credentials").path,
    ]
  }

  private func bytes(of text: String) throws -> URL {
    let file = fixture.folder.file("changed")
    try Data(text.utf8).write(to: file)
    return file
  }

  @Test(
    "a store and its missions are backed up to a bucket, and restored from it",
    arguments: StoreKind.allCases)
  func roundTrip(kind: StoreKind) async throws {
    let (server, device, blobs, store) = try await fixture.filled(kind, film: film)
    let made = try await fixture.ferryd(
      ["backup", place, "--blobs", blobs, "--json"] + access + store)
    #expect(
      try JSONLine.all(made.output).last?.text("place")
        == "\(place)/ at \(objects.endpoint)")
    let again = try await fixture.ferryd(
      ["backup", place, "--blobs", blobs] + access + store, exits: 1)
    #expect(again.error.contains("is not empty"))
    try await device.write(Sample.notes(20, "later"))
    try await device.exchange()
    try await server.stop()
    let content = ["--blobs", fixture.folder.file("restored-blobs").path]
    let restored = try fixture.empty(kind)
    // A killed restore has left a part of the film.
    let incoming = fixture.folder.file("restored-blobs/incoming")
    try FileManager.default.createDirectory(at: incoming, withIntermediateDirectories: true)
    let hash = Hexadecimal.text(SHA256.digest(of: film))
    try Data([film[0]]).write(to: incoming.appending(path: "part-backup-\(hash)"))
    try await fixture.ferryd(["restore", place] + access + content + restored)
    try await fixture.expectRestored(server, device, content + restored, count: 220)
  }

  @Test("content in a bucket is backed up to another place of a bucket, and returns to a bucket")
  func betweenBuckets() async throws {
    let (server, device, blobs, store) = try await fixture.filled(.embedded, film: film)
    // A restore brings the content into a bucket.
    let first = fixture.folder.file("first").path
    try await fixture.ferryd(["backup", first, "--blobs", blobs] + store)
    try await server.stop()
    let content = [
      "--content", "s3://\(bucket)/content", "--content-endpoint", objects.endpoint,
      "--content-credentials", fixture.folder.file("credentials").path,
      "--blobs", fixture.folder.file("uploads").path,
    ]
    let restored = try fixture.empty(.embedded)
    try await fixture.ferryd(["restore", first] + content + restored)
    try await fixture.ferryd(["backup", place] + access + content + restored)
    let last = ["--data", fixture.folder.file("last").path]
    try await fixture.ferryd(["restore", place] + access + last)
    try await fixture.expectRestored(server, device, last, count: 200)
  }

  @Test("a changed object is found, and nothing is restored")
  func damaged() async throws {
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    try await fixture.ferryd(["backup", place, "--blobs", blobs] + access + store)
    try await fixture.ferryd(["restore", place, "--check"] + access)
    let target = try fixture.empty(.embedded)
    let hash = Hexadecimal.text(SHA256.digest(of: Array("a film".utf8)))
    let object = "ferry/monday/\(hash.prefix(2))/\(hash.dropFirst(2).prefix(2))/\(hash)"
    try await objects.replace(object, in: bucket, with: try bytes(of: "a fiLm"))
    let changed = try await fixture.ferryd(["restore", place] + access + target, exits: 1)
    #expect(changed.error.contains("the content \(hash) is not as it was backed up"))
    try await objects.replace(object, in: bucket, with: try bytes(of: "a film"))
    try await objects.replace(
      "ferry/monday/store.sqlite", in: bucket, with: try bytes(of: "no store"))
    let torn = try await fixture.ferryd(["restore", place] + access + target, exits: 1)
    #expect(torn.error.contains("store.sqlite is not as it was backed up"))
    try await objects.replace(
      "ferry/monday/backup.json", in: bucket, with: try bytes(of: "{}"))
    let list = try await fixture.ferryd(["restore", place] + access + target, exits: 1)
    #expect(list.error.contains("its file backup.json cannot be read"))
    let none = try await fixture.ferryd(["restore", "\(place)-2"] + access + target, exits: 1)
    #expect(none.error.contains("is no backup"))
    #expect(!FileManager.default.fileExists(atPath: target[1]))
  }

  @Test("a bucket that cannot be used is refused with its reason")
  func refused() async throws {
    let (server, _, _, store) = try await fixture.filled(.embedded)
    try await server.stop()
    let unknown = try await fixture.ferryd(
      ["backup", "s3://no-such-bucket/x"] + access + store, exits: 1)
    #expect(unknown.error.contains("the bucket for the backup cannot be used"))
    let scheme = try await fixture.ferryd(["backup", "https://example.org/x"] + store, exits: 2)
    #expect(scheme.error.contains("a backup is in a folder or in a bucket"))
    let noKey = try await fixture.ferryd(
      ["backup", place, "--backup-endpoint", objects.endpoint] + store, exits: 2)
    #expect(noKey.error.contains("--backup-credentials names no file"))
    let nowhere = "http://127.0.0.1:\(try FreePort.refused())"
    let silent = try await fixture.ferryd(
      ["backup", place, "--start-wait", "0s", "--backup-endpoint", nowhere]
        + access.suffix(2) + store, exits: 1)
    #expect(silent.error.contains("the bucket for the backup cannot be used"))
  }
}
