import FerryCommandLine
import FerryMissionServer
import FerryPlatform
import FerryProtocol
import FerrySyncServer
import Foundation

extension MissionCommands {
  static let publish = CommandSpec(
    "publish", summary: "Publish a folder, or the files of a manifest, as a mission.",
    discussion: """
      A folder is published with all files in it, except names that begin with a dot. Links must \
      not lead out of it. A manifest is a JSON object with `items`. Each item has a `path` in the \
      mission and either a `file` beside the manifest, or a `url` with the `sha256` and `size` of \
      content on another server. A manifest can also have `title`, `summary`, `priority`, `after`, \
      `chunkSize` and `mission`. Options override the manifest.

      Publishing again creates the next version, or does nothing if nothing differs. Devices \
      receive it with their next pull. An interrupted publication leaves nothing visible.
      """,
    options: [
      spaceOption,
      OptionSpec(
        "id", value: "NAME", help: "The mission's name; by default the manifest's, or the folder's."
      ),
      OptionSpec("title", value: "TEXT", help: "The title that users see."),
      OptionSpec("summary", value: "TEXT", help: "The summary that users see."),
      OptionSpec(
        "priority", value: "N", help: "Missions with a higher priority are downloaded first.",
        kind: .integer(
          Int(
            MissionLimits.standard.priority.lowerBound)...Int(
              MissionLimits.standard.priority.upperBound))),
      OptionSpec(
        "after", value: "ID", help: "A mission that is downloaded first.", repeated: true),
      OptionSpec(
        "chunk-size", value: "SIZE",
        help: "The size of the chunks that devices verify: a power of two, 64KiB to 64MiB; 4MiB.",
        kind: .byteSize),
    ],
    flags: [
      JSONOption.flag,
      FlagSpec(
        "new-key",
        help: "Sign with another key than the published missions: devices have to trust it."),
    ],
    arguments: [ArgumentSpec("path", help: "A manifest, or a folder.", kind: .file)]
  ) { arguments in
    let origin = try MissionOrigin(try arguments.string("path"))
    let record: (MissionRecord, isNew: Bool)
    do {
      record = try await publish(origin, arguments)
    } catch let error as MissionDraftError {
      throw origin.failure(error)
    }
    try report(record.0, isNew: record.isNew, arguments)
    return .done
  }

  private static func publish(
    _ origin: MissionOrigin, _ arguments: ParsedArguments
  ) async throws -> (MissionRecord, isNew: Bool) {
    let (draft, folder) = try draft(origin, arguments)
    guard let id = draft.id else {
      throw UsageError(
        .missingOption, "the mission has no name",
        why: "the manifest has no `mission`, and the folder's name is not a mission's name",
        next: "add --id NAME")
    }
    let space = try SpaceCommands.name(try arguments.string("space"))
    return try await MissionTargets.with(arguments) { target in
      let others = try await target.list()
      let before = others.first { $0.id == id }
      let found = try await read(draft, folder) { try await target.intake(after: before?.id) }
      var manifest = try draft.manifest(
        in: space, as: id, digests: found.mapValues(\.digest)
      ).get()
      manifest.version = 0
      let files = draft.files.compactMap { found[Name($0)] }
      for first in manifest.after where !others.contains(where: { $0.id == first }) {
        try warn("its predecessor, mission \(first), is not published in space \(space)")
      }
      let bar = ProgressBar(
        "publish", unit: .bytes, total: files.reduce(0) { $0 + $1.digest.size })
      defer { bar.finish() }
      do {
        let record = try await target.publish(
          manifest, files, isNewKey: arguments.flag("new-key"), bar: bar)
        return (record, before?.manifest != record.manifest)
      } catch let problem as Problem {
        throw origin.failure(problem, of: draft)
      } catch MissionFailure.refused(let problem) {
        throw origin.failure(problem, of: draft)
      }
    }
  }

  private static func report(
    _ record: MissionRecord, isNew: Bool, _ arguments: ParsedArguments
  ) throws {
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      guard case .object(let members) = record.json else { return }
      return try output.line(JSONText.object(members + [("changed", .bool(isNew))]).text)
    }
    let what =
      "\(record.id) version \(record.version): \(record.items.counted("item")), \(record.sizeText)"
    try output.line(isNew ? "published \(what)" : "unchanged \(what)")
  }

  static func warn(_ text: String) throws {
    try TextOutput.standardError.line("ferryd: \(text)".escapedForTerminal)
  }

  // MARK: Drafts

  /// Reads the mission to publish, and the folder of the files.
  private static func draft(
    _ origin: MissionOrigin, _ arguments: ParsedArguments
  ) throws -> (MissionDraft, String) {
    let url = URL(filePath: origin.path).standardizedFileURL
    var draft: MissionDraft
    let folder: String
    if origin.isFolder {
      folder = url.path
      let found = try FolderListing.contents(of: folder)
      if found.hidden > 0 {
        try warn(
          "\(found.hidden.counted("name")) that \(found.hidden == 1 ? "begins" : "begin") with a "
            + "dot, and the files in such folders, are not published")
      }
      draft = MissionDraft(files: found.files)
      draft.id = MissionID(url.lastPathComponent)
    } else {
      folder = url.deletingLastPathComponent().path
      guard let bytes = try? Data(contentsOf: url) else {
        throw MissionDraftError("it cannot be read")
      }
      draft = try MissionDraft(decoding: Array(bytes))
    }
    try override(&draft, arguments)
    if let fault = draft.fault() { throw MissionDraftError(fault) }
    return (draft, folder)
  }

  private static func override(
    _ draft: inout MissionDraft, _ arguments: ParsedArguments
  ) throws(UsageError) {
    if let text = arguments.stringIfPresent("id") { draft.id = try id(text) }
    if let title = arguments.stringIfPresent("title") { draft.title = title }
    if let summary = arguments.stringIfPresent("summary") { draft.summary = summary }
    if let priority = try arguments.integerIfPresent("priority") {
      draft.priority = Int64(priority)
    }
    let after = arguments.strings("after")
    if !after.isEmpty {
      draft.after = []
      for text in after { draft.after.append(try id(text)) }
    }
    if let size = try arguments.byteSizeIfPresent("chunk-size") { draft.chunkSize = Int64(size) }
  }

  // MARK: Files

  /// Reads the draft's files. Returns them with their digests, by their names in the draft.
  ///
  /// - Parameter intake: Asked for when all files were found, and their sizes are permitted.
  static func read(
    _ draft: MissionDraft, _ folder: String, _ intake: () async throws -> BlobIntake
  ) async throws -> [Name: BlobSource] {
    let thread = ThreadExecutor(name: "ferry-hash")
    let (files, chunkSize, cancellation) = (draft.files, draft.chunkSize, Cancellation())
    let found = try await thread.run {
      try files.map { name in
        let path = try FolderListing.file(name, in: folder)
        return (name: name, path: path, size: try FilePart.size(of: path))
      }
    }
    let sizes = Dictionary(uniqueKeysWithValues: found.map { (Name($0.name), $0.size) })
    if let fault = draft.fault(sizes: sizes) { throw MissionDraftError(fault) }
    let intake = try await intake()
    return try await withTaskCancellationHandler {
      try await thread.run {
        let bar = ProgressBar("hash", unit: .bytes, total: found.reduce(0) { $0 + $1.size })
        defer { bar.finish() }
        var sources: [Name: BlobSource] = [:]
        for file in found {
          sources[Name(file.name)] = try intake.read(file.path, chunkSize: chunkSize) { count in
            bar.advance(by: Int64(count))
            return !cancellation.isCancelled
          }
        }
        return sources
      }
    } onCancel: {
      cancellation.cancel()
    }
  }
}
