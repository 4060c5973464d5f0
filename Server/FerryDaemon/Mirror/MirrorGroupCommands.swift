import FerryCommandLine
import FerryMirror

/// The commands of `ferryd mirror` for a group.
enum MirrorGroupCommands {
  /// Returns the group named by a command; `nil` if the name is a mirror's.
  static func group(_ arguments: ParsedArguments) async throws -> MirrorGroup? {
    let (name, folder) = try MirrorCommands.folder(arguments)
    guard folder.isGroup else { return nil }
    return try await MirrorCommands.explained(name) {
      try MirrorGroup(name, in: MirrorCommands.root(arguments))
    }
  }

  // MARK: Adopting

  /// Returns the settings of a group.
  static func configuration(
    _ name: String, _ column: (name: String, value: String?)?, _ pattern: String,
    _ arguments: ParsedArguments
  ) throws -> MirrorGroupConfiguration {
    guard let column, column.value == nil, arguments.stringIfPresent("space") == nil else {
      throw UsageError(
        .invalidValue, "--space-name does not fit the other options",
        why: "a group has a space for each value of a column",
        next: "write --space-column account_id --space-name 'account-{}', without --space")
    }
    var mirror = try MirrorCommands.configuration(name, space: pattern, arguments)
    mirror.adoptions = try AdoptCommand.adoptions(arguments)
    return MirrorGroupConfiguration(
      mirror, shared: try AdoptCommand.shared(arguments), column: column.name, pattern: pattern,
      token: try TokenOptions.token(arguments))
  }

  /// Begins a group, and uploads the rows of the existing values.
  static func adopt(
    _ configuration: MirrorGroupConfiguration, _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let name = configuration.name
    let root = try MirrorCommands.root(arguments)
    try await MirrorCommands.warnOfRole(name, configuration.database)
    let isAutomatic = try MirrorCommands.isAutomatic(arguments)
    let (group, failed) = try await MirrorCommands.explained(name) {
      let configuration = try await configuration.choosingCapture(
        isAutomatic: isAutomatic, in: MirrorFolder(name, in: root))
      let group = try await MirrorGroup.begin(configuration, in: root, fallsBack: isAutomatic)
      return (group, try await group.beginMirrors().failed)
    }
    let mirrors = group.mirrors()
    let progress = ProgressBar("adopting", unit: .items("spaces"), total: Int64(mirrors.count))
    let results = try await group.sharing { database in
      try await eachAtOnce(mirrors) { name in
        try await MirrorCommands.opened(name, group.mirror(name), sharing: database) { mirror in
          try await mirror.adoptRows { _ in }
          progress.advance(by: 1)
          return try await mirror.status()
        }
      }
    }
    progress.finish()
    try report(results, failed, [], name, arguments)
    if !arguments.flag("json") {
      try TextOutput.standardOutput.line("next: ferryd mirror run \(name)")
    }
    return failed.isEmpty && results.allSatisfy(\.isDone) ? .done : .failed
  }

  // MARK: Each mirror

  /// The result of a command for one mirror of a group.
  private struct MirrorResult<Value: Sendable> {
    var name: String
    var value: Result<Value, any Error>

    var isDone: Bool { (try? value.get()) != nil }
    var error: String? {
      if case .failure(let error) = value { "\(error)" } else { nil }
    }

    /// Returns the JSON of the value, or of the failure.
    func json(_ body: (Value) -> JSONText) -> JSONText {
      switch value {
      case .success(let value): body(value)
      case .failure(let error):
        .object([("mirror", .string(name)), ("error", .string("\(error)"))])
      }
    }
  }

  /// Runs `body` for one mirror after another. A failure of one stops no other one.
  private static func each<Value: Sendable>(
    _ mirrors: [String], _ body: (String) async throws -> Value
  ) async throws -> [MirrorResult<Value>] {
    var results: [MirrorResult<Value>] = []
    for name in mirrors {
      results.append(await result(name, body))
      try Task.checkCancellation()
    }
    return results
  }

  /// Mirrors that upload rows at the same time.
  private static let adoptedAtOnce = 4

  /// Runs `body` for a few mirrors at once. A failure of one stops no other one.
  private static func eachAtOnce<Value: Sendable>(
    _ mirrors: [String], _ body: @escaping @Sendable (String) async throws -> Value
  ) async throws -> [MirrorResult<Value>] {
    try await withThrowingTaskGroup(of: (Int, MirrorResult<Value>).self) { group in
      var results: [Int: MirrorResult<Value>] = [:]
      for (place, name) in mirrors.enumerated() {
        if place >= adoptedAtOnce, let (place, result) = try await group.next() {
          results[place] = result
        }
        group.addTask { (place, await result(name, body)) }
      }
      for try await (place, result) in group { results[place] = result }
      try Task.checkCancellation()
      return mirrors.indices.compactMap { results[$0] }
    }
  }

  private static func result<Value: Sendable>(
    _ name: String, _ body: (String) async throws -> Value
  ) async -> MirrorResult<Value> {
    do {
      return MirrorResult(name: name, value: .success(try await body(name)))
    } catch {
      return MirrorResult(name: name, value: .failure(error))
    }
  }

  // MARK: Looking

  static func show(
    _ group: MirrorGroup, _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let name = group.configuration.name
    let (wanted, stops) = try await MirrorCommands.explained(name) {
      (try await group.wanted(), try await group.stops())
    }
    let limit = try MirrorCommands.listLimit(arguments)
    let results = try await each(group.mirrors()) { mirror in
      try await MirrorCommands.explained(mirror) {
        try await Mirror.status(group.mirror(mirror), limit: limit)
      }
    }
    try report(results, wanted, stops, name, arguments)
    guard results.allSatisfy(\.isDone) else { return .failed }
    let needsUser = results.contains { (try? $0.value.get())?.exit == .needsUser }
    return stops.isEmpty && !needsUser ? .done : .needsUser
  }

  private static func report(
    _ mirrors: [MirrorResult<Mirror.Status>], _ wanted: [WantedSpace], _ stops: [MirrorStop],
    _ name: String, _ arguments: ParsedArguments
  ) throws {
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      return try output.line(
        JSONText.object([
          ("group", .string(name)),
          ("mirrors", .array(mirrors.map { mirror in mirror.json { $0.json } })),
          ("wanted", .array(wanted.map(\.json))),
          ("stopped", .array(stops.map { .string($0.description) })),
        ]).text)
    }
    if !mirrors.isEmpty {
      var table = TextTable([
        "MIRROR", "SPACE", "CHANGE", "ROWS", "CAPTURED", "DEFERRED", "UNSENT",
      ])
      for mirror in mirrors {
        guard let status = try? mirror.value.get() else { continue }
        table.append([
          mirror.name, status.space, "\(status.applied.grouped) of \(status.head.grouped)",
          status.adopted.reduce(0) { $0 + $1.rows }.grouped, status.captured.grouped,
          status.deferredCount.grouped, status.unsentCount.grouped,
        ])
      }
      try output.lines(table.lines(width: Terminal.current().tableWidth))
    }
    let first = mirrors.lazy.compactMap { try? $0.value.get() }.first
    if let first, first.log != nil || first.captureReason != nil {
      try output.lines(first.captureLines)
    }
    for mirror in mirrors {
      if let error = mirror.error { try output.line("\(mirror.name): \(error)") }
      for stop in (try? mirror.value.get())?.stops ?? [] {
        try output.line("\(mirror.name): stopped: \(stop)")
      }
    }
    for stop in stops {
      try output.line(
        "new values are not noted: \(stop); give the table its former names, and run "
          + "`ferryd mirror adopt \(name)` with the same options")
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
    // All mirrors of a group have the same tables, so one of them finds the unclaimed rows.
    var unclaimed: [UnclaimedRows]?
    let results = try await group.sharing { database in
      try await each(group.mirrors()) { name in
        try await MirrorCommands.opened(name, group.mirror(name), sharing: database) { mirror in
          let found = try await mirror.verify(repairing: side)
          if unclaimed == nil { unclaimed = try await mirror.unclaimedRows() }
          return found
        }
      }
    }
    let count = results.reduce(0) { $0 + ((try? $1.value.get().count) ?? 0) }
    let wanted = try await MirrorCommands.explained(group.configuration.name) {
      try await group.wanted()
    }
    if arguments.flag("json") {
      let answers = results.map { result in
        result.json { found in
          .object([
            ("mirror", .string(result.name)), ("differences", .array(found.map(\.json))),
            ("repaired", .bool(side != nil)),
          ])
        }
      }
      try output.line(
        JSONText.object([
          ("mirrors", .array(answers)), ("wanted", .array(wanted.map(\.json))),
          ("unclaimed", .array((unclaimed ?? []).map(\.json))),
        ]).text)
    } else {
      for result in results {
        if let error = result.error { try output.line("\(result.name): \(error)") }
        for row in (try? result.value.get()) ?? [] {
          try output.line("\(result.name): \(row.text)")
        }
      }
      for rows in unclaimed ?? [] { try output.line(rows.text) }
      for space in wanted { try output.line(space.text) }
      try output.line(verdict(count, isRepaired: side != nil))
    }
    return results.allSatisfy(\.isDone) && (count == 0 || side != nil) ? .done : .failed
  }

  /// Returns the last line of `verify`.
  static func verdict(_ count: Int, isRepaired: Bool) -> String {
    (count == 1 ? "1 row differs" : "\(count.grouped) rows differ")
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
