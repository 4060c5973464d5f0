import FerryCommandLine
import FerryMissionServer
import FerryPlatform
import FerryPostgres
import FerrySQLite
import FerrySyncServer
import Foundation

/// `ferryd backup` and `ferryd restore`.
enum BackupCommands {
  static let backup = CommandSpec(
    "backup",
    summary:
      "Copy a store and its missions' content to a folder or a bucket, also while servers run.",
    discussion: """
      The copy is one state of the store. All parts have their SHA-256 in backup.json, which is \
      written last. Keep the place safe: it has the hashes of all tokens and the key that signs \
      missions. With --database, --blobs or --content names the content; without it the backup has none. A \
      PostgreSQL database also needs pg_dump. A bucket needs room for a copy of the store in TMPDIR.
      """,
    options: ContentOptions.options + ObjectStoreOptions.options("backup"),
    flags: [JSONOption.flag],
    arguments: [
      ArgumentSpec(
        "place", help: "A folder, or s3://BUCKET/PREFIX; absent or empty.", kind: .directory)
    ],
    examples: [
      ExampleSpec("Back up the embedded store", "ferryd backup /backups/monday"),
      ExampleSpec("Back up to a bucket of Amazon", "ferryd backup s3://backups/ferry/monday"),
    ]
  ) { arguments in
    let maker = BackupMaker(
      place: try await place(arguments), store: try store(arguments),
      blobs: try ContentOptions.directory(arguments),
      missionKey: arguments.stringIfPresent("mission-key"),
      content: try await ContentOptions.remoteStore(arguments))
    let now = RFC3339.text(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000))
    let manifest = try await explained("backup") { bar in
      try await maker.run(createdAt: now) { bar.update(completed: $0) }
    }
    try report(manifest, maker.place.name, arguments, event: "backed up")
    return .done
  }

  static let restore = CommandSpec(
    "restore", summary: "Bring a backup back into a new store.",
    discussion: """
      First all parts are checked. Then the content and the store are written: to a directory \
      without a store, or to an empty database. Start the server afterwards. Devices send again the \
      operations that the server lost. With --check nothing is written. Restore only what you have \
      backed up yourself: a backup decides about all tokens, and pg_restore runs its SQL. If others \
      can write to its place, give its checksum.
      """,
    options: [
      OptionSpec(
        "checksum", value: "HEX",
        help: "The checksum that `ferryd backup` has printed; a backup with another one is refused."
      )
    ] + ContentOptions.options + ObjectStoreOptions.options("backup"),
    flags: [JSONOption.flag, FlagSpec("check", help: "Only compare all parts with their hashes.")],
    arguments: [
      ArgumentSpec(
        "place", help: "The folder of the backup, or s3://BUCKET/PREFIX.", kind: .directory)
    ],
    examples: [
      ExampleSpec("Restore on another machine", "ferryd restore /backups/monday --data /srv/ferry"),
      ExampleSpec("Check a backup", "ferryd restore /backups/monday --check"),
    ]
  ) { arguments in
    let isCheck = arguments.flag("check")
    let checksum = arguments.stringIfPresent("checksum")?.lowercasedASCII
    let restorer = BackupRestorer(
      place: try await place(arguments), store: try StoreOptions.location(arguments),
      blobs: try ContentOptions.directory(arguments),
      missionKey: arguments.stringIfPresent("mission-key"),
      content: isCheck ? nil : try await ContentOptions.remoteStore(arguments))
    let manifest = try await explained("restore") { bar in
      let manifest = try await restorer.manifest(checksum: checksum)
      if isCheck {
        try await restorer.check(manifest) { bar.update(completed: $0) }
      } else {
        try await restorer.run(manifest) { bar.update(completed: $0) }
      }
      return manifest
    }
    try report(manifest, restorer.place.name, arguments, event: isCheck ? "intact" : "restored")
    return .done
  }

  private static func place(_ arguments: ParsedArguments) async throws -> any BackupPlace {
    let name = try arguments.string("place")
    if name.begins(with: "s3://") {
      let client = try ObjectStoreOptions.client(name, "backup", arguments)
      try await ObjectStoreOptions.waitUntilReady(client, "backup", arguments)
      return try BackupBucket(ObjectFiles(client))
    }
    guard !name.has("://") else {
      throw CommandFailure(
        "\(name) cannot have a backup", why: "a backup is in a folder or in a bucket",
        next: "name a folder, or s3://BUCKET/PREFIX", status: .usage, code: "backup_place")
    }
    return BackupFolder(
      name: name.utf8.count > 1 ? String(name.start(before: "/") ?? name[...]) : name)
  }

  private static func store(_ arguments: ParsedArguments) throws -> StoreLocation {
    let location = try StoreOptions.location(arguments)
    try StoreOptions.check(location)
    return location
  }

  private static func report(
    _ manifest: BackupManifest, _ place: String, _ arguments: ParsedArguments, event: String
  ) throws {
    let checksum = BackupManifest.checksum(of: try manifest.encoded())
    let bytes = manifest.content.reduce(manifest.storeFile.size) { $0 + $1.size }
    if arguments.flag("json") {
      return try TextOutput.standardOutput.line(
        JSONText.object([
          ("event", .string(event)), ("place", .string(place)),
          ("store", .string(manifest.store.rawValue)), ("createdAt", .string(manifest.createdAt)),
          ("files", .int(Int64(manifest.content.count))), ("bytes", .string(String(bytes))),
          ("checksum", .string(checksum)),
        ]).text)
    }
    try TextOutput.standardOutput.line(
      "\(event): \(place), made \(manifest.createdAt): the store and "
        + "\(manifest.content.count.counted("file")) of missions, \(bytes.counted("byte"))\nchecksum: \(checksum)"
    )
  }

  private static func explained<T: Sendable>(
    _ title: String, _ body: @escaping @Sendable (ProgressBar) async throws -> T
  ) async throws -> T {
    let bar = ProgressBar(title, unit: .bytes)
    defer { bar.finish() }
    do {
      return try await Task.detached { try await body(bar) }.value
    } catch let error as BackupError {
      throw CommandFailure(error.what, why: error.why, next: error.next, code: title)
    } catch let error as BlobError {
      throw CommandFailure(
        "\(title) failed", why: "\(error)",
        next: "check the place of the backup, its rights and its space",
        code: title)
    } catch let error as SQLiteError {
      throw CommandFailure(
        "\(title) failed", why: error.message,
        next: "check the place of the backup, its rights and its space",
        code: title)
    } catch let error as PostgresError {
      throw CommandFailure(
        "\(title) failed", why: error.message, next: "check --database", code: title)
    } catch let error as CocoaError {
      throw CommandFailure(
        "\(title) failed", why: error.localizedDescription,
        next: "check the place of the backup, its rights and its space", code: title)
    }
  }
}
