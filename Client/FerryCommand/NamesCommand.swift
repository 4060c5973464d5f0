import Ferry
import FerryCommandLine
import FerryPlatform

/// Names of a file for the completion of shells.
enum CompletedNames: String, CaseIterable {
  case tables
  case spaces
  case missions

  /// The most names.
  private static let namesMax = 1_000

  /// Values of this kind in a command's specification.
  var kind: ValueKind { .listed(rawValue) }

  private var query: String {
    switch self {
    case .tables:
      """
      SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(lower(name), 1, 6) <> 'ferry_'
        AND substr(lower(name), 1, 7) <> 'sqlite_'
      """
    case .spaces:
      "SELECT space FROM ferry_replica WHERE space IS NOT NULL UNION SELECT space FROM ferry_spaces"
    case .missions: "SELECT id FROM ferry_missions"
    }
  }

  /// Returns the names in a file; none for another file than a replica. Names displayed by a shell
  /// as several lines or as control characters are left out.
  func names(in path: String) async -> [String] {
    guard FileAccess.exists(path), let file = try? await LocalDatabase.open(path) else { return [] }
    let rows = try? await file.read { [query] in
      try $0.query(query + " ORDER BY 1 LIMIT \(Self.namesMax)").map(\.values)
    }
    await file.close()
    return (rows ?? []).compactMap { row in
      guard case .text(let name)? = row.first,
        !name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
      else { return nil }
      return name
    }
  }

  /// Returns the value of `--replica` among the words of a line; `nil` without one. Bash passes a
  /// `=` as a separate word.
  static func replica(among words: [String]) -> String? {
    for (index, word) in words.enumerated() {
      if let path = word.rest(after: "--replica=") { return String(path) }
      guard word == "--replica" || word == "-r" else { continue }
      return words[(index + 1)...].first { $0 != "=" }
    }
    return nil
  }
}

/// `ferry names`: names to complete on a command line.
enum NamesCommand {
  /// Not for users: shells complete names with it.
  static let names = CommandSpec(
    "names", summary: "List names for the completion of a shell.",
    arguments: [
      ArgumentSpec(
        "LIST", help: "The names to list.", kind: .choice(CompletedNames.allCases.map(\.rawValue))),
      ArgumentSpec("WORD", help: "The words of the line.", arity: .zeroOrMore),
    ],
    hidden: true
  ) { arguments in
    guard let list = CompletedNames(rawValue: try arguments.string("LIST")) else { return .usage }
    let named = CompletedNames.replica(among: arguments.strings("WORD"))
    let path = try named ?? arguments.string("replica")
    try TextOutput.standardOutput.lines(await list.names(in: path))
    return .done
  }
}
