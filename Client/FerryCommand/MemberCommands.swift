import Ferry
import FerryCommandLine
import FerryProtocol

/// `ferry space create`, `invite`, `invitations`, `accept` and `members`.
enum MemberCommands {
  private static let server = OptionSpec(
    "server", short: "s", value: "URL",
    help: "The server's address; without it, that of the file's first space.",
    environment: "FERRY_SERVER")
  private static let tokenHelp =
    "Your bearer token; without it, that of the file's first space, if the server is the same."

  // MARK: Spaces

  static let space = CommandSpec(
    "space", summary: "Create spaces on the server.", subcommands: [spaceCreate],
    examples: [
      ExampleSpec("A list to share", "ferry space create groceries --title \"Our groceries\"")
    ])

  private static let spaceCreate = CommandSpec(
    "create", summary: "Create a space with you as its admin, and join it with this file.",
    discussion: """
      Needs a user: a token with an owner (`ferryd token create --owner NAME`), or a JSON Web Token. The \
      server decides whether users may create spaces (`ferryd serve --create-spaces NAMES`). If the \
      file has no space yet, the new one is its first.
      """,
    options: [
      OptionSpec("title", value: "TEXT", help: "A title for people."), server,
    ] + TokenOptions.options(tokenHelp),
    arguments: [ArgumentSpec("NAME", help: "1 to 63 characters of A–Z a–z 0–9 . _ -.")]
  ) { arguments in
    let title = arguments.stringIfPresent("title") ?? ""
    let name = try arguments.string("NAME")
    guard let space = SpaceName(name) else {
      throw CommandFailure(
        "'\(name)' cannot be a space's name",
        why: "a name has 1 to 63 characters of A–Z a–z 0–9 . _ -, the first a letter or digit",
        next: "choose such a name", status: .usage, code: "bad_space")
    }
    let request = SpaceRequest(space: space, title: title)
    let replica = try await entering(arguments, server: nil) { account in
      try await account.create(request)
      return name
    }
    try await printEntered(replica, arguments)
    return .done
  }

  static let accept = CommandSpec(
    "accept", summary: "Accept an invitation, and join its space with this file.",
    discussion: """
      INVITATION is the link or the code that `ferry invite` printed. With a code alone, give the \
      server with --server, unless the file has one. If the file has no space yet, this one is its \
      first.
      """,
    options: [server] + TokenOptions.options(tokenHelp),
    arguments: [ArgumentSpec("INVITATION", help: "The link, or the code.")],
    examples: [
      ExampleSpec(
        "On a new device",
        "ferry accept https://sync.example.org/join#K7Q2M-0TN4R-8XWJD-3FA9C-PZ51E --token-file FILE"
      )
    ]
  ) { arguments in
    let text = try arguments.string("INVITATION")
    let link = InvitationLink(text)
    let replica = try await entering(arguments, server: link?.server) { account in
      try await account.accept(link?.code ?? text).space.value
    }
    try await printEntered(replica, arguments)
    return .done
  }

  /// Enters a space with the file, and returns the space's replica. A file without a space gets it as
  /// the first one.
  ///
  /// - Parameters:
  ///   - url: the server named by a link; `nil` for that of the command line or the file.
  ///   - enter: makes the user a member, and returns the name of the space.
  private static func entering(
    _ arguments: ParsedArguments, server url: String?,
    _ enter: (UserAccount) async throws -> String
  ) async throws -> Replica {
    let replica = try await FerryCommand.open(arguments, creating: true)
    let first = try await replica.status().server
    let named = arguments.stringIfPresent("server")
    guard let url = url ?? named ?? first?.url else {
      throw CommandFailure(
        "no server is named", why: "this file has none yet",
        next: "add --server URL, or give the whole link", status: .usage, code: "no_server")
    }
    if let named, arguments.source("server") == .commandLine, !ServerAddress.isSame(named, url) {
      throw CommandFailure(
        "the invitation is for another server", why: "its link is for \(url)",
        next: "leave --server out, if you trust this server", code: "other_server")
    }
    var token = try await replica.storedToken(for: url)
    if token == nil || isGiven("token", arguments) || isGiven("token-file", arguments) {
      // A link chooses the server, and must not choose the receiver of a token from the environment.
      guard
        named.map({ ServerAddress.isSame($0, url) }) ?? false || isGiven("token", arguments)
          || isGiven("token-file", arguments)
      else {
        throw CommandFailure(
          "no token is given for \(url)",
          why: "a token from the environment goes to no server of a link",
          next: "add --token-file FILE", status: .needsUser, code: "no_token")
      }
      token = try TokenOptions.token(arguments)
    }
    let authorities = try FerryCommand.authorities(arguments)
    let account = try UserAccount(
      url, token: token, certificateAuthorities: authorities,
      transport: SystemTransport(configuration: FerryCommand.network(arguments)))
    let space = try await enter(account)
    guard first != nil else {
      try await replica.connect(
        to: url, space: space, token: token, certificateAuthorities: authorities)
      return replica
    }
    return try await replica.spaces.enter(
      space, server: url, token: token.map { .fixed($0) }, certificateAuthorities: authorities)
  }

  private static func isGiven(_ option: String, _ arguments: ParsedArguments) -> Bool {
    arguments.stringIfPresent(option) != nil && arguments.source(option) == .commandLine
  }

  private static func printEntered(
    _ replica: Replica, _ arguments: ParsedArguments
  ) async throws {
    try await SpaceCommands.print(replica, arguments) { _, space in
      "\(replica.path) takes part in \(space); `ferry sync` exchanges it"
    }
  }

  /// Lists the user's spaces on the server.
  static func printMine(
    _ replica: Replica, _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let own = try await replica.spaces.mine()
    guard own.user != nil else {
      throw CommandFailure(
        "the token belongs to no user", why: "it has no owner, so it is a member of no space",
        next: "ask the server's administrator for a token with an owner", code: "no_user")
    }
    try Presentation.print(
      ["space", "title", "role", "since", "by"],
      own.spaces.map { space in
        [
          (space.space.value, .string(space.space.value)), (space.title, .string(space.title)),
          (space.role.rawValue, .string(space.role.rawValue)),
          (Presentation.time(space.since), .int(space.since)),
          (shown(space.maker), .string(space.maker)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  // MARK: Invitations

  private static let spaceArgument = ArgumentSpec(
    "SPACE", help: "The space; without it, the file's first one.", kind: CompletedNames.spaces.kind,
    arity: .optional)

  static let invite = CommandSpec(
    "invite", summary: "Invite other users to a space.",
    discussion: """
      Prints a link, which has the server and the code, and the code alone. Send one of them to the \
      other user, who runs `ferry accept`, or opens the link in your app. Needs the role admin.
      """,
    options: [
      OptionSpec(
        "role", value: "ROLE", help: "The role of users who accept it.",
        kind: .choice(Role.allCases.map(\.rawValue)), default: "writer"),
      OptionSpec(
        "expires", value: "TIME", help: "How long it is valid, 365 days at most.", kind: .duration,
        default: "7d"),
    ],
    flags: [FlagSpec("once", help: "One user alone may accept it.")],
    arguments: [spaceArgument],
    examples: [
      ExampleSpec("For one other person", "ferry invite groceries --role writer --once")
    ]
  ) { arguments in
    let replica = try await target(arguments)
    guard let role = Role(rawValue: try arguments.string("role")) else { return .usage }
    let invited = try await replica.members.invite(
      as: role, for: try arguments.duration("expires"), isOnce: arguments.flag("once"))
    let (invitation, link) = (invited.invitation, invited.link)
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      let fields =
        json(invitation) + [
          ("code", .string(link.code)), ("link", .string(link.description)),
        ]
      try output.line(JSONText.object(fields).text)
    } else {
      try output.lines([
        "link  \(link)", "code  \(link.code)",
        "for   \(invitation.isOnce ? "one user" : "users"), as \(role.rawValue), until "
          + Presentation.time(invitation.expiresAt),
      ])
    }
    return .done
  }

  static let invitations = CommandSpec(
    "invitations", summary: "List and revoke invitations.",
    subcommands: [invitationsList, invitationsRevoke])

  private static let invitationsList = CommandSpec(
    "list", summary: "List the invitations in force, oldest first.", arguments: [spaceArgument]
  ) { arguments in
    let found = try await target(arguments).members.invitations()
    try Presentation.print(
      ["id", "role", "for", "until", "by"],
      found.map { invitation in
        [
          (invitation.id, .string(invitation.id)),
          (invitation.role.rawValue, .string(invitation.role.rawValue)),
          (invitation.isOnce ? "one user" : "users", .bool(invitation.isOnce)),
          (Presentation.time(invitation.expiresAt), .int(invitation.expiresAt)),
          (shown(invitation.maker), .string(invitation.maker)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  private static let invitationsRevoke = CommandSpec(
    "revoke", summary: "Make an invitation invalid. Members stay members.",
    arguments: [ArgumentSpec("ID", help: "The ID in the list."), spaceArgument]
  ) { arguments in
    let id = try arguments.string("ID")
    try await target(arguments).members.revoke(id)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("revoked", .string(id))]).text : "revoked invitation \(id)")
    return .done
  }

  // MARK: Members

  static let members = CommandSpec(
    "members", summary: "List, change and remove the members of a space.",
    subcommands: [membersList, membersSet, membersRemove],
    examples: [ExampleSpec("Let a user only read", "ferry members set bea --role reader")])

  private static let membersList = CommandSpec(
    "list", summary: "List the members, by user.", arguments: [spaceArgument]
  ) { arguments in
    let found = try await target(arguments).members.all()
    try Presentation.print(
      ["user", "role", "since", "by"],
      found.map { member in
        [
          (shown(member.user.text), .string(member.user.text)),
          (member.role.rawValue, .string(member.role.rawValue)),
          (Presentation.time(member.since), .int(member.since)),
          (shown(member.maker), .string(member.maker)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  private static let userArgument = ArgumentSpec(
    "USER", help: "The owner of tokens, such as bea, or the user as --json shows it.")

  private static let membersSet = CommandSpec(
    "set", summary: "Give a member a role.",
    discussion: """
      With a token that is itself an admin's, a user who is no member becomes one. If a role gets weaker, \
      the invitations in force end.
      """,
    options: [
      OptionSpec(
        "role", value: "ROLE", help: "The role.", kind: .choice(Role.allCases.map(\.rawValue)),
        required: true)
    ],
    arguments: [userArgument, spaceArgument]
  ) { arguments in
    let user = try user(arguments)
    guard let role = Role(rawValue: try arguments.string("role")) else { return .usage }
    try await target(arguments).members.set(role, for: user)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("user", .string(user.text)), ("role", .string(role.rawValue))]).text
        : "\(user.name) is \(role.rawValue)")
    return .done
  }

  private static let membersRemove = CommandSpec(
    "remove", summary: "End the membership of a user.",
    discussion: """
      The user's devices keep their rows, and get and send nothing any more. The invitations in force end, \
      because the user may know them.
      """,
    arguments: [userArgument, spaceArgument]
  ) { arguments in
    let user = try user(arguments)
    try await target(arguments).members.remove(user)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("removed", .string(user.text))]).text
        : "\(user.name) is no member any more")
    return .done
  }

  private static func user(_ arguments: ParsedArguments) throws -> UserID {
    let text = try arguments.string("USER")
    guard let user = UserID(owner: text) else {
      throw CommandFailure(
        "'\(text)' is no user", why: "a user has 1 to 512 visible characters",
        next: "`ferry members list` shows users", status: .usage, code: "bad_user")
    }
    return user
  }

  /// Opens the replica of the space that the command line names.
  private static func target(_ arguments: ParsedArguments) async throws -> Replica {
    let replica = try await FerryCommand.openForServer(arguments)
    guard let space = arguments.stringIfPresent("SPACE") else { return replica }
    return try await replica.spaces.replica(of: space)
  }

  private static func json(_ invitation: Invitation) -> [(String, JSONText)] {
    [
      ("id", .string(invitation.id)), ("role", .string(invitation.role.rawValue)),
      ("once", .bool(invitation.isOnce)), ("createdAt", .int(invitation.createdAt)),
      ("expiresAt", .int(invitation.expiresAt)), ("by", .string(invitation.maker)),
    ]
  }

  /// Returns a principal for people, and for other commands: an owner without `owner:`.
  private static func shown(_ principal: String) -> String {
    guard let user = UserID(principal), UserID(owner: user.name) == user else { return principal }
    return user.name
  }
}
