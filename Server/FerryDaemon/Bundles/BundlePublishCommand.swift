import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer
import Foundation

extension BundleCommands {
  static let publish = CommandSpec(
    "publish", summary: "Publish a folder with a web app as a version of a bundle.",
    discussion: """
      The folder has a file ferry-bundle.json: a JSON object with `name`, `version` (such as \
      "1.2"), `entry` (the first page; index.html by default), `services` (a list of objects with \
      `name` and `version`: the services of the shell that the app needs) and `minShell` (the \
      oldest shell version that it runs on). Other members are refused. All files of the folder \
      are published, except names that begin with a dot, and ferry-bundle.json itself.

      A published version keeps its files for good: the same files again change nothing, and other \
      files need another version. Devices receive it with their next pull. An interrupted \
      publication leaves nothing visible.
      """,
    options: [
      MissionCommands.spaceOption,
      OptionSpec("name", value: "NAME", help: "The bundle's name, instead of the file's."),
      OptionSpec("title", value: "TEXT", help: "The title that users see."),
      percentOption,
    ],
    flags: [
      JSONOption.flag,
      FlagSpec(
        "new-key",
        help: "Sign with another key than the published missions: devices have to trust it."),
    ],
    arguments: [ArgumentSpec("dir", help: "The folder.", kind: .directory)]
  ) { arguments in
    let origin = try MissionOrigin(try arguments.string("dir"))
    do {
      try await publish(origin, arguments)
    } catch let error as MissionDraftError {
      throw origin.failure(error)
    }
    return .done
  }

  private static func publish(
    _ origin: MissionOrigin, _ arguments: ParsedArguments
  ) async throws {
    let share = try share(arguments)
    let folder = URL(filePath: origin.path).standardizedFileURL.path
    let (draft, bundle) = try draft(folder, origin, arguments)
    let space = try SpaceCommands.name(try arguments.string("space"))
    try await MissionTargets.with(arguments) { target in
      let bundles = try await target.bundles()
      let before = bundles.first { $0.id == bundle.id }
      let last = before ?? bundles.last { $0.id.name == bundle.id.name }
      let found = try await MissionCommands.read(draft, folder) {
        try await target.intake(after: last?.id.mission)
      }
      var manifest = try draft.manifest(
        in: space, as: bundle.id.mission, digests: found.mapValues(\.digest)
      ).get()
      manifest.version = 0
      let files = draft.files.compactMap { found[Name($0)] }
      let bar = ProgressBar(
        "publish", unit: .bytes, total: files.reduce(0) { $0 + $1.digest.size })
      let record: MissionRecord
      do {
        defer { bar.finish() }
        record = try await target.publish(
          manifest, files, isNewKey: arguments.flag("new-key"), share: share, bar: bar)
      } catch MissionFailure.refused(let problem) {
        throw BundleCommands.failure(problem, bundle.id.name, in: space)
      } catch let problem as Problem {
        throw BundleCommands.failure(problem, bundle.id.name, in: space)
      }
      guard let entry = BundleEntry(record) else {
        throw CommandFailure(
          "the server published no bundle", why: "its version of Ferry does not know bundles",
          next: "retract mission \(record.id) with `ferryd mission retract`, and update the server",
          code: "bundles_unsupported")
      }
      try report(entry, isNew: before?.manifest != entry.manifest, arguments)
    }
  }

  /// Reads the folder's declaration, and lists the files.
  private static func draft(
    _ folder: String, _ origin: MissionOrigin, _ arguments: ParsedArguments
  ) throws -> (MissionDraft, BundleDeclaration) {
    let bundle = try declaration(folder, origin, arguments)
    let found = try FolderListing.contents(of: folder)
    if found.hidden > 0 {
      try MissionCommands.warn(
        "\(found.hidden.counted("name")) that \(found.hidden == 1 ? "begins" : "begin") with a "
          + "dot, and the files in such folders, are not published")
    }
    var draft = MissionDraft(files: found.files.filter { $0 != BundleDeclaration.fileName })
    draft.id = bundle.id.mission
    draft.title = arguments.stringIfPresent("title") ?? ""
    draft.bundle = bundle
    guard !draft.items.isEmpty else {
      throw CommandFailure(
        "\(origin.path) cannot be published as a bundle",
        why: "it has no file beside \(BundleDeclaration.fileName)",
        next: "put the app's files into it, among them the first page \(bundle.entry), and publish "
          + "again", code: "no_bundle")
    }
    if let fault = draft.fault() { throw MissionDraftError(fault) }
    return (draft, bundle)
  }

  private static func declaration(
    _ folder: String, _ origin: MissionOrigin, _ arguments: ParsedArguments
  ) throws -> BundleDeclaration {
    let name = try arguments.stringIfPresent("name").map { try self.name($0) }
    let path = try? FolderListing.file(BundleDeclaration.fileName, in: folder)
    let limit = BundleLimits.standard.declarationBytes
    guard origin.isFolder, let path, let size = try? FilePart.size(of: path) else {
      throw CommandFailure(
        "\(origin.path) cannot be published as a bundle",
        why: origin.isFolder
          ? "it has no file \(BundleDeclaration.fileName)" : "it is not a folder",
        next:
          "write \(BundleDeclaration.fileName) with {\"name\":\"board\",\"version\":\"1\"} into "
          + "the app's folder, and name that folder",
        code: "no_bundle")
    }
    func failure(_ why: String) -> CommandFailure {
      CommandFailure(
        "\(path) does not declare a bundle", why: why,
        next:
          "correct the file: it is a JSON object such as {\"name\":\"board\",\"version\":\"1\"}, "
          + "and `ferryd bundle publish --help` describes its members",
        code: "invalid_bundle")
    }
    guard size <= limit, let bytes = FileManager.default.contents(atPath: path) else {
      throw failure("it cannot be read, or has more than \(limit) bytes")
    }
    do {
      return try BundleDeclaration(decoding: Array(bytes), name: name)
    } catch {
      throw failure(error.aboutFile)
    }
  }

  private static func report(
    _ entry: BundleEntry, isNew: Bool, _ arguments: ParsedArguments
  ) throws {
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      return try output.line(JSONText.object(entry.fields + [("changed", .bool(isNew))]).text)
    }
    let size = ByteSize(bytes: Int(entry.size)).text
    try output.line(
      "\(isNew ? "published" : "unchanged") \(entry.id): \(entry.files.counted("file")), \(size), "
        + "for \(entry.listing.share) of the devices")
  }
}
