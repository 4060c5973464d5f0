import FerryCommandLine
import FerryMirror

/// The commands of `ferryd mirror` for a group.
extension MirrorCommands {
  /// Returns the group that a command names; `nil` if the name is a mirror's.
  static func group(_ arguments: ParsedArguments) async throws -> MirrorGroup? {
    let (name, folder) = try folder(arguments)
    guard folder.isGroup else { return nil }
    return try await explained(name) { try MirrorGroup(name, in: root(arguments)) }
  }

  // MARK: Adopting

  /// Begins a group, and uploads the rows of the values that exist.
  static func adoptGroup(
    _ name: String, _ column: (name: String, value: String?)?, _ pattern: String,
    _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    guard let column, column.value == nil, arguments.stringIfPresent("space") == nil else {
      throw UsageError(
        .invalidValue, "--space-name does not fit the other options",
        why: "a group has a space for each value of a column",
        next: "write --space-column account_id --space-name 'account-{}', without --space")
    }
    var mirror = try configuration(name, space: pattern, arguments)
    mirror.adoptions = try adoptions(arguments)
    let configuration = MirrorGroupConfiguration(
      mirror, column: column.name, pattern: pattern, token: arguments.stringIfPresent("token"))
    let root = try root(arguments)
    let (group, failed) = try await explained(name) {
      let group = try await MirrorGroup.begin(configuration, in: root)
      return (group, try await group.beginMirrors().failed)
    }
    let mirrors = group.mirrors()
    let progress = ProgressBar("adopting", unit: .items("spaces"), total: Int64(mirrors.count))
    var statuses: [(name: String, status: Mirror.Status)] = []
    for name in mirrors {
      let status = try await opened(name, group.mirror(name)) { mirror in
        try await mirror.adoptRows { _ in }
        return try await mirror.status()
      }
      statuses.append((name, status))
      progress.advance(by: 1)
    }
    progress.finish()
    try report(statuses, failed, name, arguments)
    if !arguments.flag("json") {
      try TextOutput.standardOutput.line("next: ferryd mirror run \(name)")
    }
    return failed.isEmpty ? .done : .failed
  }

  // MARK: Looking

  static func show(
    _ group: MirrorGroup, _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let name = group.configuration.name
    let wanted = try await explained(name) { try await group.wanted() }
    var statuses: [(name: String, status: Mirror.Status)] = []
    for name in group.mirrors() {
      let status = try await opened(name, group.mirror(name), isAlone: false) {
        try await $0.status()
      }
      statuses.append((name, status))
    }
    try report(statuses, wanted, name, arguments)
    return .done
  }

  private static func report(
    _ mirrors: [(name: String, status: Mirror.Status)], _ wanted: [WantedSpace], _ name: String,
    _ arguments: ParsedArguments
  ) throws {
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      return try output.line(
        JSONText.object([
          ("group", .string(name)), ("mirrors", .array(mirrors.map { $0.status.json($0.name) })),
          ("wanted", .array(wanted.map(\.json))),
        ]).text)
    }
    if !mirrors.isEmpty {
      var table = TextTable([
        "MIRROR", "SPACE", "CHANGE", "ROWS", "CAPTURED", "DEFERRED", "UNSENT",
      ])
      for (name, status) in mirrors {
        table.append([
          name, status.space, "\(status.applied) of \(status.head)",
          "\(status.adopted.reduce(0) { $0 + $1.rows })", "\(status.captured)",
          "\(status.deferred.count)", "\(status.unsentCount)",
        ])
      }
      try output.lines(table.lines(width: Terminal.current().tableWidth))
    }
    for space in wanted { try output.line(space.text) }
    if mirrors.isEmpty, wanted.isEmpty {
      try output.line("no row names a space yet; a mirror begins with the first one")
    }
  }

  // MARK: Comparing

  /// Compares the rows of all mirrors of a group.
  static func verify(
    _ group: MirrorGroup, _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let side = arguments.stringIfPresent("repair").flatMap(Mirror.Side.init(rawValue:))
    let output = TextOutput.standardOutput
    var answers: [JSONText] = []
    var (count, unclaimed): (Int, [UnclaimedRows]?) = (0, nil)
    for name in group.mirrors() {
      // All mirrors of a group have the same tables.
      let isFirst = unclaimed == nil
      let (found, rows) = try await opened(name, group.mirror(name)) { mirror in
        let found = try await mirror.verify(repairing: side)
        return (found, isFirst ? try await mirror.unclaimedRows() : [])
      }
      unclaimed = unclaimed ?? rows
      count += found.count
      if arguments.flag("json") {
        answers.append(
          .object([
            ("mirror", .string(name)), ("differences", .array(found.map(\.json))),
            ("repaired", .bool(side != nil)),
          ]))
      } else {
        for row in found { try output.line("\(name): \(row.text)") }
      }
    }
    let wanted = try await explained(group.configuration.name) { try await group.wanted() }
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("mirrors", .array(answers)), ("wanted", .array(wanted.map(\.json))),
          ("unclaimed", .array((unclaimed ?? []).map(\.json))),
        ]).text)
    } else {
      for rows in unclaimed ?? [] { try output.line(rows.text) }
      for space in wanted { try output.line(space.text) }
      try output.line(verdict(count, isRepaired: side != nil))
    }
    return count == 0 || side != nil ? .done : .failed
  }

  /// Returns the last line of `verify`.
  static func verdict(_ count: Int, isRepaired: Bool) -> String {
    (count == 1 ? "1 row differs" : "\(count) rows differ")
      + (isRepaired && count > 0 ? "; repaired" : "")
  }
}

extension WantedSpace {
  fileprivate var text: String {
    "\(value) has no mirror yet" + (reason.map { ": \($0)" } ?? "")
  }

  fileprivate var json: JSONText {
    .object([("value", .string(value)), ("reason", .string(orNull: reason))])
  }
}
