import CommandLineKit
import FerryProtocol
import SyncServer

/// `ferryd token …`.
enum TokenCommands {
  static let create = CommandSpec(
    "create", summary: "Make a token and print it, this once.",
    options: [
      OptionSpec(
        "space", value: "NAME", help: "The space it is for, made when absent.", required: true),
      OptionSpec(
        "role", value: "ROLE", help: "What it allows.",
        kind: .choice(Role.allCases.map(\.rawValue)), required: true),
    ],
    flags: [JSONOption.flag]
  ) { arguments in
    let space = try SpaceCommands.name(try arguments.string("space"))
    let role = Role(rawValue: try arguments.string("role")) ?? .reader
    try await StoreOptions.withStore(arguments, makes: true) { store, _ in
      var random = SystemRandomNumberGenerator()
      let token = AccessToken(random: &random)
      let isFirst = try await !store.hasEverHadTokens()
      let stored = StoredToken(
        hash: token.hash, space: space, role: role, createdAt: ServiceClock.system.wall())
      try await store.addToken(stored)
      try show(token, stored, isFirst: isFirst, isJSON: arguments.flag("json"))
    }
    return .done
  }

  static let list = CommandSpec(
    "list", summary: "List the tokens: not themselves, but what they allow.",
    flags: [JSONOption.flag]
  ) { arguments in
    try await StoreOptions.withStore(arguments) { store, _ in
      let tokens = try await store.tokens()
      if arguments.flag("json") {
        let answer = JSONText.object([("tokens", .array(tokens.map(\.json)))])
        try TextOutput.standardOutput.line(answer.text)
      } else {
        var table = TextTable(["ID", "SPACE", "ROLE", "CREATED"])
        for token in tokens {
          table.append([
            token.shortID, token.space.value, token.role.rawValue, token.createdText,
          ])
        }
        try TextOutput.standardOutput.lines(table.lines(width: Terminal.current().tableWidth))
      }
    }
    return .done
  }

  static let revoke = CommandSpec(
    "revoke", summary: "Make a token invalid.",
    discussion: "Servers that are running let it in for up to five more seconds.",
    flags: [JSONOption.flag],
    arguments: [ArgumentSpec("id", help: "Its ID in `ferryd token list`, or the token itself.")]
  ) { arguments in
    let text = try arguments.string("id")
    try await StoreOptions.withStore(arguments) { store, _ in
      let token = try find(text, in: try await store.tokens())
      guard try await store.removeToken(hash: token.hash) else { throw unknown(text) }
      if arguments.flag("json") {
        try TextOutput.standardOutput.line(JSONText.object([("revoked", token.json)]).text)
      } else {
        try TextOutput.standardOutput.line(
          "revoked \(token.shortID) (\(token.role.rawValue) of \(token.space))")
      }
    }
    return .done
  }

  private static func show(
    _ token: AccessToken, _ stored: StoredToken, isFirst: Bool, isJSON: Bool
  ) throws {
    if isJSON {
      guard case .object(let members) = stored.json else { return }
      let answer = JSONText.object([("token", .string(token.text))] + members)
      return try TextOutput.standardOutput.line(answer.text)
    }
    try TextOutput.standardOutput.line(token.text)
    try TextOutput.standardError.line(
      "ferryd: token \(stored.shortID), \(stored.role.rawValue) of \(stored.space); "
        + "it is not shown again")
    if isFirst {
      try TextOutput.standardError.line(
        "ferryd: this is the first token, so from now on every request needs one")
    }
  }

  private static func find(_ text: String, in tokens: [StoredToken]) throws -> StoredToken {
    let found =
      if let token = AccessToken(text) {
        tokens.filter { $0.hash == token.hash }
      } else {
        tokens.filter { text.utf8.count >= 4 && $0.fullID.hasPrefix(text.lowercased()) }
      }
    guard let token = found.first else { throw unknown(text) }
    guard found.count == 1 else {
      throw CommandFailure(
        "nothing was revoked", why: "\(found.count) tokens have an ID that begins so",
        next: "write more of it; `ferryd token list --json` has the whole ID",
        code: "ambiguous_token")
    }
    return token
  }

  private static func unknown(_ text: String) -> CommandFailure {
    // The text is not repeated: it may be a secret with a slip in it.
    CommandFailure(
      "nothing was revoked", why: "no token has this ID",
      next: "`ferryd token list` shows those that exist; an ID has four characters at least",
      code: "unknown_token")
  }
}

extension StoredToken {
  /// What may be shown of it.
  var json: JSONText {
    .object([
      ("id", .string(fullID)), ("space", .string(space.value)),
      ("role", .string(role.rawValue)), ("createdAt", .string(createdText)),
    ])
  }

  var createdText: String { RFC3339.text(milliseconds: createdAt) }
}

/// `--json` of the commands that answer.
enum JSONOption {
  static let flag = FlagSpec("json", help: "Answer with one JSON object.")
}
