import Ferry
import FerryCommandLine

/// The presentation of stored files.
enum FilePresentation {
  static func print(_ files: [StoredFile], asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON { return try output.lines(files.map { json($0).text }) }
    if files.isEmpty { return try output.line("there is no such file in the store") }
    var table = TextTable(["key", "size", "stored", "sha256"], whole: ["key"])
    for file in files {
      table.append([
        file.key, ByteSize(bytes: Int(file.size)).text, Presentation.time(file.storedAt),
        "\(file.hash)",
      ])
    }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
  }

  static func print(_ file: StoredFile, path: String, asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON { return try output.line(json(file, path: path).text) }
    try output.lines(
      [
        file.key, "size: \(file.size.counted("byte"))",
        "on disk: \(file.bytesOnDisk.counted("byte"))",
        "stored: \(Presentation.time(file.storedAt))", "sha256: \(file.hash)", "path: \(path)",
      ].map(\.escapedForTerminal))
  }

  static func print(_ usage: FileStoreUsage, asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON {
      return try output.line(
        JSONText.object([
          ("files", .int(usage.count)), ("bytes", .int(usage.bytes)),
          ("bytesOnDisk", .int(usage.bytesOnDisk)), ("bytesFree", .int(usage.bytesFree)),
        ]).text)
    }
    try output.lines([
      usage.count.counted("file"), "size: \(ByteSize(bytes: Int(usage.bytes)).text)",
      "on disk: \(ByteSize(bytes: Int(usage.bytesOnDisk)).text)",
      "free: \(ByteSize(bytes: Int(usage.bytesFree)).text)",
    ])
  }

  private static func json(_ file: StoredFile, path: String? = nil) -> JSONText {
    .object(
      [
        ("key", .string(file.key)), ("bytes", .int(file.size)), ("sha256", .string("\(file.hash)")),
        ("bytesOnDisk", .int(file.bytesOnDisk)),
        ("storedAt", .string(Presentation.time(file.storedAt))),
      ] + (path.map { [("path", .string($0))] } ?? []))
  }
}

/// The results of checks.
struct FileReport {
  let asJSON: Bool
  private var count = 0
  private var faults = 0

  init(asJSON: Bool) { self.asJSON = asJSON }

  /// Records a result, and prints it if the file is not intact.
  mutating func add(_ key: String, _ check: FileCheck) throws {
    count += 1
    let why: String
    switch check {
    case .intact: return
    case .missing: why = "there is no file for \(key)"
    case .damaged(let reason): why = reason
    }
    faults += 1
    try TextOutput.standardOutput.line(
      asJSON
        ? JSONText.object([
          ("key", .string(key)), ("state", .string(check == .missing ? "missing" : "damaged")),
          ("why", .string(why)),
        ]).text
        : "\(key): \(why)".escapedForTerminal)
  }

  /// Prints the sum.
  func end() throws -> ExitStatus {
    try TextOutput.standardOutput.line(
      asJSON
        ? JSONText.object([("checked", .int(count)), ("damaged", .int(faults))]).text
        : "\(count.counted("file")) checked, \(faults) damaged or missing")
    return faults == 0 ? .done : .needsUser
  }
}

/// Describes every error of a file store: what happened, why, and what to do next.
extension FileStoreError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    let (what, next): (String, String) =
      switch kind {
      case .notFound:
        ("there is no such file", "`ferry files list DIR` lists the files of a store")
      case .badKey: ("the key cannot be used", "give a key of 1 to 8192 bytes")
      case .limitReached: ("the file does not fit", "remove other files first")
      case .diskFull:
        ("the disk is full", "free some disk space, then try again; no stored file is lost")
      case .damaged:
        ("the content is not the expected one", "`ferry files check DIR` finds all damaged files")
      case .wrongKey:
        ("the store cannot be read", "give the key of the store with --key-file, or none")
      case .files: ("a file could not be read or written", "check the folder named above")
      case .index:
        (
          "the store's index could not be used",
          "check that the folder is a file store and writable"
        )
      case .cancelled: ("interrupted", "run the command again")
      }
    return CommandFailure(what, why: message, next: next, code: "files_\(code)")
  }

  /// The kind in `snake_case`, for scripts.
  private var code: String {
    kind.rawValue.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
  }
}
