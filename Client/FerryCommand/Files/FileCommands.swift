import Ferry
import FerryCommandLine
import FerryPlatform
import Foundation

/// `ferry files`: files under keys, kept on the device.
enum FileCommands {
  static let files = CommandSpec(
    "files", summary: "List, check, read and remove the files of a file store.",
    discussion: """
      A program stores files by their URLs or other keys in a folder with the library's FileStore. \
      These commands look into such a folder, also while the program runs. `ferry files put` \
      creates an absent store.
      """,
    options: [
      OptionSpec(
        "key-file", value: "FILE",
        help: "A file with the key of an encrypted store: 32 bytes, or 64 hexadecimal digits.",
        kind: .file, environment: "FERRY_FILES_KEY_FILE")
    ],
    subcommands: [filesList, filesShow, filesPut, filesGet, filesCheck, filesRemove],
    examples: [
      ExampleSpec(
        "The files of one server", "ferry files list cache --prefix https://example.org/"),
      ExampleSpec("Are all files intact?", "ferry files check cache"),
      ExampleSpec("Free some space", "ferry files remove cache --older-than 30d"),
    ])

  private static let folderArgument = ArgumentSpec(
    "DIR", help: "The folder of the store.", kind: .directory)
  private static let keyArgument = ArgumentSpec("KEY", help: "The URL or other key of the file.")

  private static let filesList = CommandSpec(
    "list", summary: "List the files of a store.",
    options: [
      OptionSpec("prefix", value: "TEXT", help: "Only files whose keys begin with this."),
      OptionSpec(
        "limit", short: "n", value: "COUNT", help: "The largest number of files.",
        kind: .integer(1...Int.max)),
    ],
    arguments: [folderArgument]
  ) { arguments in
    let store = try await fileStore(arguments)
    var left = try arguments.integerIfPresent("limit", in: 1...Int.max) ?? .max
    let prefix = arguments.stringIfPresent("prefix") ?? ""
    var files: [StoredFile] = []
    while left > 0 {
      let page = try await store.list(
        prefix: prefix, after: files.last?.key, limit: min(left, 500))
      if page.isEmpty { break }
      files += page
      left -= page.count
    }
    try FilePresentation.print(files, asJSON: arguments.flag("json"))
    return .done
  }

  private static let filesShow = CommandSpec(
    "show", summary: "Show the space of a store, or the facts about one file.",
    arguments: [
      folderArgument,
      ArgumentSpec("KEY", help: "The URL or other key of the file.", arity: .optional),
    ]
  ) { arguments in
    let store = try await fileStore(arguments)
    let asJSON = arguments.flag("json")
    guard let key = arguments.stringIfPresent("KEY") else {
      try FilePresentation.print(try await store.usage(), asJSON: asJSON)
      return .done
    }
    guard let file = try await store.file(key) else { throw missing(key) }
    try FilePresentation.print(file, path: store.path(for: key), asJSON: asJSON)
    return .done
  }

  private static let filesPut = CommandSpec(
    "put", summary: "Store a copy of a file.",
    discussion: """
      The file is in the store as a whole, or not at all, whatever happens meanwhile. A file that \
      the key had before is replaced.
      """,
    options: [
      OptionSpec("sha256", value: "HASH", help: "Store the file only if it has this checksum.")
    ],
    arguments: [
      folderArgument, keyArgument, ArgumentSpec("FILE", help: "The file to copy.", kind: .file),
    ]
  ) { arguments in
    let store = try await fileStore(arguments, creating: true)
    let file = try await store.put(
      contentsOf: try arguments.string("FILE"), for: try arguments.string("KEY"),
      expecting: try expectedHash(arguments))
    try FilePresentation.print(
      file, path: store.path(for: file.key), asJSON: arguments.flag("json"))
    return .done
  }

  private static let filesGet = CommandSpec(
    "get", summary: "Write the content of a file to standard output.",
    arguments: [folderArgument, keyArgument]
  ) { arguments in
    let store = try await fileStore(arguments)
    let reader = try await store.open(try arguments.string("KEY"))
    var offset: Int64 = 0
    while offset < reader.file.size {
      let part = try await reader.read(from: offset, count: 1 << 20)
      try TextOutput.standardOutput.bytes(part)
      offset += Int64(part.count)
    }
    return .done
  }

  private static let filesCheck = CommandSpec(
    "check", summary: "Read files and compare them with their checksums.",
    discussion: "Without KEY: all files. Ends with status 4 if a file is damaged or missing.",
    options: [
      OptionSpec("sha256", value: "HASH", help: "The checksum that the file of KEY must have.")
    ],
    arguments: [
      folderArgument,
      ArgumentSpec("KEY", help: "The URL or other key of the file.", arity: .optional),
    ]
  ) { arguments in
    let store = try await fileStore(arguments)
    let hash = try expectedHash(arguments)
    var report = FileReport(asJSON: arguments.flag("json"))
    if let key = arguments.stringIfPresent("KEY") {
      try report.add(key, try await store.check(key, expecting: hash))
      return try report.end()
    }
    guard hash == nil else {
      throw UsageError(
        .invalidValue, "--sha256 is the checksum of one file", why: "no KEY names the file",
        next: "add the file's KEY, or omit --sha256")
    }
    var last: String?
    while true {
      let page = try await store.list(after: last, limit: 500)
      for file in page { try report.add(file.key, try await store.check(file.key)) }
      guard let key = page.last?.key else { return try report.end() }
      last = key
    }
  }

  private static let filesRemove = CommandSpec(
    "remove", summary: "Remove files from a store.",
    options: [
      OptionSpec(
        "older-than", value: "TIME", help: "Remove files that were stored longer ago than this.",
        kind: .duration)
    ],
    flags: [FlagSpec("all", help: "Remove all files.")],
    arguments: [
      folderArgument,
      ArgumentSpec("KEY", help: "The URLs or other keys of the files.", arity: .zeroOrMore),
    ]
  ) { arguments in
    let keys = arguments.strings("KEY")
    let age = try arguments.durationIfPresent("older-than")
    let ways = [!keys.isEmpty, age != nil, arguments.flag("all")]
    guard ways.count(where: { $0 }) == 1 else {
      throw UsageError(
        .invalidValue, "it is not clear which files are to be removed",
        why: "name KEYs, or give --older-than, or give --all", next: "give exactly one of them")
    }
    let store = try await fileStore(arguments)
    var count = 0
    if let age {
      count = try await store.removeAll(olderThan: age)
    } else if keys.isEmpty {
      count = try await store.removeAll()
    }
    for key in keys { count += try await store.remove(key) ? 1 : 0 }
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("removed", .int(count))]).text : "removed \(count.counted("file"))")
    return .done
  }

  // MARK: Parts

  private static func fileStore(
    _ arguments: ParsedArguments, creating: Bool = false
  ) async throws -> FileStore {
    try await FileStore.open(
      FileAccess.wholePath(try arguments.string("DIR")), key: try MissionKeyFile.key(arguments),
      creating: creating)
  }

  private static func expectedHash(_ arguments: ParsedArguments) throws -> ContentHash? {
    guard let text = arguments.stringIfPresent("sha256") else { return nil }
    guard let hash = ContentHash(text.lowercasedASCII) else {
      throw UsageError(
        .invalidValue, "'\(text)' is no checksum", why: "a SHA-256 has 64 hexadecimal digits",
        next: "`sha256sum FILE` prints the checksum of a file")
    }
    return hash
  }

  private static func missing(_ key: String) -> FileStoreError {
    FileStoreError(.notFound, "the file store has no file for \(key)")
  }
}

extension TextOutput {
  /// Writes bytes as they are, for standard output only.
  fileprivate func bytes(_ bytes: [UInt8]) throws {
    do {
      try FileHandle.standardOutput.write(contentsOf: bytes)
    } catch {
      throw OutputError.failed(errno)
    }
  }
}
