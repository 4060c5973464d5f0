import FerryCommandLine
import FerryPlatform
import FerryProtocol
import FerrySyncServer
import Foundation

/// `ferryd token …`.
enum TokenCommands {
  static let root = CommandSpec(
    "token", summary: "Create, list, rotate and revoke tokens.",
    discussion: """
      A token has a role in one space, in several, or in all: a reader pulls, a writer pushes as \
      well, an admin also makes the space and manages its schema, missions and tokens. An admin of \
      all spaces administers the server. Only a hash of the secret is stored. From the first token \
      on, all servers of this store refuse requests without one.
      """,
    subcommands: [create, list, rotate, revoke])

  static let create = CommandSpec(
    "create", summary: "Create a token and print it, only this time.",
    options: [
      OptionSpec(
        "space", value: "NAME[=ROLE]",
        help: """
          A space that the token is for, created if absent; `list-*` matches all spaces whose \
          names begin with `list-`. May be repeated.
          """,
        repeated: true),
      OptionSpec(
        "role", value: "ROLE", help: "The role in the spaces that are named without a role.",
        kind: .choice(Role.allCases.map(\.rawValue))),
      OptionSpec("name", value: "TEXT", help: "A description for people."),
      OptionSpec(
        "owner", value: "TEXT",
        help: """
          The user, a person or service, that owns the token. Tokens of one owner are one principal: \
          they share devices, quotas and rates. A token with an owner needs no space: the user may be \
          a member of spaces.
          """),
      OptionSpec(
        "expires", value: "TIME", help: "How long the token is valid; by default without a limit.",
        kind: .duration),
      SecretOutput.option,
    ],
    flags: [
      FlagSpec("all-spaces", help: "For all spaces; with the role admin, for the server itself."),
      JSONOption.flag,
    ],
    examples: [
      ExampleSpec(
        "For the devices of one space", "ferryd token create --space notes --role writer"),
      ExampleSpec(
        "For a user, who may be invited to spaces",
        "ferryd token create --owner ada --out ada.token"),
      ExampleSpec(
        "For an administrator, into a file",
        "ferryd token create --all-spaces --role admin --name ops --out ops.token"),
    ]
  ) { arguments in
    let request = try request(arguments)
    let output = try SecretOutput(arguments)
    try await StoreOptions.withStore(arguments, createsIfMissing: true) { store, _ in
      var random = SystemRandomNumberGenerator()
      let isFirst = try await !store.hasEverHadTokens()
      let mark = CommandMark.now
      let (stored, secret) = request.make(now: mark.at, random: &random)
      // A secret must not become valid before it is stored.
      try output.prepare(secret)
      try await store.addToken(stored, hash: secret.hash, by: mark)
      try output.show(secret, stored, "is not shown again")
      if isFirst {
        try TextOutput.standardError.line(
          "ferryd: this is the first token: every request needs a token from now on")
      }
    }
    return .done
  }

  static let list = CommandSpec(
    "list", summary: "List the tokens with their permissions, but without their secrets.",
    flags: [JSONOption.flag]
  ) { arguments in
    try await StoreOptions.withStore(arguments) { store, _ in
      let now = ServiceClock.system.wall()
      var list = ListOutput(
        "tokens", ["ID", "NAME", "COUNTS TO", "ALLOWS", "CREATED", "EXPIRES", "USED"],
        isJSON: arguments.flag("json"))
      try await store.forEachPage { tokens in
        try list.add(tokens.map { ($0.cells(now: now), $0.json) })
      }
      try list.finish()
    }
    return .done
  }

  static let rotate = CommandSpec(
    "rotate", summary: "Give a token another secret and print it, only this time.",
    discussion: """
      The token keeps its ID, its permissions, and its devices. The former secret stays valid for \
      the time of --grace, so that devices can switch.
      """,
    options: [
      OptionSpec(
        "grace", value: "TIME", help: "How long the former secret stays valid.", kind: .duration,
        default: "0s"),
      SecretOutput.option,
    ],
    flags: [JSONOption.flag], arguments: [idArgument]
  ) { arguments in
    let text = try arguments.string("id")
    let grace = Retention(try arguments.duration("grace")).milliseconds ?? 0
    let output = try SecretOutput(arguments)
    try await StoreOptions.withStore(arguments) { store, _ in
      let token = try await find(text, in: store, "rotated")
      var random = SystemRandomNumberGenerator()
      let secret = AccessToken(random: &random)
      let mark = CommandMark.now
      try output.prepare(secret)
      let end = mark.at + min(grace, TokenRequest.secondsMax * 1_000)
      guard try await store.rotateToken(token.id, hash: secret.hash, graceEnd: end, by: mark)
      else { throw unknown("rotated") }
      try output.show(secret, token, "has a new secret, which is not shown again")
    }
    return .done
  }

  static let revoke = CommandSpec(
    "revoke", summary: "Make a token invalid.",
    discussion: "Running servers accept it for up to five more seconds.",
    flags: [JSONOption.flag], arguments: [idArgument]
  ) { arguments in
    let text = try arguments.string("id")
    try await StoreOptions.withStore(arguments) { store, _ in
      let token = try await find(text, in: store, "revoked")
      guard try await store.removeToken(token.id, by: CommandMark.now) else {
        throw unknown("revoked")
      }
      if arguments.flag("json") {
        try TextOutput.standardOutput.line(JSONText.object([("revoked", token.json)]).text)
      } else {
        try TextOutput.standardOutput.line("revoked \(token.text)")
      }
    }
    return .done
  }

  private static let idArgument = ArgumentSpec(
    "id", help: "Its ID in `ferryd token list`, the beginning of it, or the token itself.")

  // MARK: Requests

  private static func request(_ arguments: ParsedArguments) throws -> TokenRequest {
    let role = arguments.stringIfPresent("role").flatMap { Role(rawValue: $0) }
    var roles: [SpacePattern: Role] = [:]
    if arguments.flag("all-spaces") { roles[.everything] = try required(role) }
    for text in arguments.strings("space") {
      let parts = text.parts(at: "=", most: 2)
      guard let pattern = SpacePattern(String(parts[0])) else {
        throw UsageError(
          .invalidValue, "'\(parts[0])' cannot be a space's name",
          why: "a name has 1 to 63 characters of A–Z a–z 0–9 . _ -, the first a letter or digit",
          next: "write a name, or the beginning of names and *")
      }
      guard roles[pattern] == nil else {
        throw UsageError(
          .invalidValue, "--space \(pattern.text) is given twice",
          why: "a token has one role for each space", next: "give each space once")
      }
      if parts.count == 2 {
        guard let own = Role(rawValue: String(parts[1])) else {
          throw UsageError(
            .invalidValue, "'\(parts[1])' is not a role", why: "--space is \(text)",
            next: "write reader, writer or admin")
        }
        roles[pattern] = own
      } else {
        roles[pattern] = try required(role)
      }
    }
    let owner = arguments.stringIfPresent("owner")
    guard
      let grants = roles.isEmpty && owner != nil ? .some(AccessGrants.none) : AccessGrants(roles)
    else {
      throw UsageError(
        .missingOption, "the token names no space, or more than \(AccessGrants.countMax)",
        why:
          "--space NAME names a space, --all-spaces means all, and a user with --owner needs none",
        next: "write --space NAME --role ROLE, or --owner NAME")
    }
    let lifetime = try arguments.durationIfPresent("expires").map { $0.components.seconds }
    let request = TokenRequest(
      name: arguments.stringIfPresent("name") ?? "", owner: owner,
      grants: grants, lifetime: lifetime)
    if let fault = request.fault {
      throw UsageError(
        .invalidValue, "the token is invalid", why: fault,
        next: "change --name, --owner or --expires")
    }
    return request
  }

  private static func required(_ role: Role?) throws(UsageError) -> Role {
    guard let role else {
      throw UsageError(
        .missingOption, "--role is missing", why: "a token has a role in each of its spaces",
        next: "add --role reader, writer or admin")
    }
    return role
  }

  private static func find(
    _ text: String, in store: any SyncStore, _ done: String
  ) async throws -> StoredToken {
    if let secret = AccessToken(text) {
      guard let known = try await store.token(hash: secret.hash) else { throw unknown(done) }
      return known.token
    }
    var (found, count) = (StoredToken?.none, 0)
    try await store.forEachPage { tokens in
      for token in tokens
      where text.utf8.count >= 4 && token.id.text.begins(with: text.lowercasedASCII) {
        (found, count) = (token, count + 1)
      }
    }
    guard let token = found else { throw unknown(done) }
    guard count == 1 else {
      throw CommandFailure(
        "nothing was \(done)", why: "the IDs of \(count) tokens begin with this text",
        next: "write more of the ID; `ferryd token list` lists it", code: "ambiguous_token")
    }
    return token
  }

  private static func unknown(_ done: String) -> CommandFailure {
    // The text is not repeated: it may be a secret with a slip in it.
    CommandFailure(
      "nothing was \(done)", why: "no token has this ID",
      next: "`ferryd token list` lists the tokens; give at least four characters of an ID",
      code: "unknown_token")
  }
}

extension StoredToken {
  /// The token as a row of the list.
  fileprivate func cells(now: Int64) -> [String] {
    [
      id.text, name, owner ?? account?.id ?? "", grants.text, RFC3339.text(milliseconds: createdAt),
      expiryText(now: now), lastUsedAt.map { RFC3339.text(milliseconds: $0) } ?? "never",
    ]
  }

  /// The token as JSON, without the secret.
  var json: JSONText {
    .object([
      ("id", .string(id.text)), ("name", .string(name)), ("owner", .string(orNull: owner)),
      ("account", .string(Principal(self).account.id)),
      (
        "spaces",
        .object(grants.list.map { ($0.pattern.text, .string($0.role.rawValue)) })
      ),
      ("createdAt", .string(RFC3339.text(milliseconds: createdAt))),
      ("expiresAt", .string(orNull: expiresAt.map { RFC3339.text(milliseconds: $0) })),
      ("lastUsedAt", .string(orNull: lastUsedAt.map { RFC3339.text(milliseconds: $0) })),
    ])
  }

  fileprivate func expiryText(now: Int64) -> String {
    guard let expiresAt else { return "never" }
    return now < expiresAt ? RFC3339.text(milliseconds: expiresAt) : "expired"
  }
}

/// The author of changes by commands, for the audit log.
enum CommandMark {
  static var principal: Principal { Principal(commandLine: NSUserName()) }

  static var now: AuditMark { AuditMark(principal, at: ServiceClock.system.wall()) }
}

/// `--json` of the commands with an answer.
enum JSONOption {
  static let flag = FlagSpec("json", help: "Answer with one JSON object.")
}
