import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static func user(_ name: String) throws -> UserID {
    try unwrap(UserID(owner: name), "a user")
  }

  private static func mark(_ user: UserID, at: Int64 = SpaceUnderTest.now) throws -> AuditMark {
    AuditMark(try unwrap(Principal(user.text), "a principal"), at: at)
  }

  private static func invitation(
    _ id: String, _ role: Role, by user: UserID, isOnce: Bool = false,
    expiresAt: Int64 = SpaceUnderTest.now + 100
  ) -> Invitation {
    Invitation(
      id: id, role: role, isOnce: isOnce, createdAt: SpaceUnderTest.now, expiresAt: expiresAt,
      maker: user.text)
  }

  static let members: [StoreContract] = [
    StoreContract("a user makes a space, and is its first admin") { under in
      let store = try await under.open(.standard)
      let (ada, bea) = (try user("ada"), try user("bea"))
      let request = SpaceRequest(space: .name("list"), title: "Groceries \u{1F600}")
      let made = try await store.createSpace(request, of: ada, by: try mark(ada), quota: 1)
      let space = try unwrap(made, "a space").get()
      let expected = Membership(
        space: .name("list"), title: "Groceries \u{1F600}", role: .admin,
        since: SpaceUnderTest.now, maker: ada.text)
      try require(try await store.memberships(of: ada), is: [expected], "the user's spaces")
      try require(try await store.roles(of: ada), is: [.name("list"): .admin], "the roles")
      try require(
        try await store.members(of: space.id),
        is: [Member(user: ada, role: .admin, since: SpaceUnderTest.now, maker: ada.text)],
        "the members")
      let other = try await store.createSpace(request, of: bea, by: try mark(bea), quota: 1)
      try require(other == nil, "another user got the space")
      let again = try await store.createSpace(request, of: ada, by: try mark(ada), quota: 1)
      try require(try again?.get(), is: space, "the same space again")
      let second = try await store.createSpace(
        SpaceRequest(space: .name("more")), of: ada, by: try mark(ada), quota: 1)
      try require(second.map { $0.problemCode == .storageQuota } ?? false, "one too many")
      try require(try await store.space(named: .name("more")) == nil, "it was made")
      try require(try await store.roles(of: bea).isEmpty, "a stranger has a role")
      let actions = try await store.audit(AuditQuery()).map(\.action)
      try require(actions, is: ["space_created", "member_added"], "the audit log")
      await store.close()
    },
    StoreContract("a role is changed and ended, and a space with members keeps an admin") { under in
      try await under.withSpace { under in
        let (store, space) = (under.store, under.space)
        let (ada, bea) = (try user("ada"), try user("bea"))
        try require(try await set(.admin, ada, in: under) == nil, "the first admin")
        try require(
          try await set(.reader, bea, by: ada, in: under), is: .forbidden, "without consent")
        try require(try await set(.writer, bea, in: under) == nil, "a writer")
        try require(try await set(.writer, bea, by: ada, in: under) == nil, "the same again")
        try require(
          try await set(.reader, ada, by: ada, in: under), is: .forbidden, "the last admin, changed"
        )
        try require(
          try await set(nil, ada, by: ada, in: under), is: .forbidden, "the last admin, ended")
        try require(try await set(nil, ada, by: bea, in: under), is: .forbidden, "by a writer")
        try require(try await set(nil, ada, in: under) == nil, "ended by a credential")
        // Admitted a moment ago, and no admin any more.
        try require(
          try await set(nil, bea, by: ada, in: under), is: .forbidden, "by a former admin")
        try require(try await set(.admin, ada, in: under) == nil, "back again")
        try require(try await set(.admin, bea, by: ada, in: under) == nil, "a second admin")
        try require(try await set(nil, ada, by: ada, in: under) == nil, "one of two admins")
        try require(try await set(nil, ada, by: ada, in: under) == nil, "a user who is no member")
        try require(try await set(nil, bea, by: bea, in: under) == nil, "the last member")
        try require(try await store.members(of: space.id).isEmpty, "a member is left")
        let log = try await store.audit(AuditQuery()).map { "\($0.action) \($0.detail)" }
        try require(
          log,
          is: [
            "member_added admin owner:ada", "member_added writer owner:bea",
            "member_removed owner:ada", "member_added admin owner:ada",
            "member_changed admin owner:bea", "member_removed owner:ada",
            "member_removed owner:bea",
          ], "the audit log")
      }
    },
    StoreContract("an invitation makes members until it ends, or is used once") { under in
      try await under.withSpace { under in
        let (store, space) = (under.store, under.space)
        let (ada, bea, cid) = (try user("ada"), try user("bea"), try user("cid"))
        try await start(ada, .admin, in: under)
        let hashes = (1...3).map { [UInt8](repeating: $0, count: 32) }
        let all = [
          invitation("1", .reader, by: ada), invitation("2", .writer, by: ada, isOnce: true),
          invitation("3", .writer, by: ada, expiresAt: SpaceUnderTest.now),
        ]
        let caller = MemberCaller(try mark(ada).principal, isByCredential: false)
        for (invitation, hash) in zip(all, hashes) {
          try require(
            try await store.addInvitation(invitation, hash: hash, to: space, by: caller) == nil,
            "an invitation")
        }
        try require(try await store.invitations(to: space.id), is: all, "the invitations")
        let membership = try await accept(hashes[0], bea, in: under).get()
        try require(membership.role, is: .reader, "the role")
        try require(membership.maker, is: ada.text, "who invited")
        try require(
          try await accept(hashes[0], cid, in: under).get().role, is: .reader, "another user's")
        try require(
          try await accept(hashes[2], cid, in: under).problemCode, is: .unknownInvitation,
          "an expired one")
        try require(
          try await accept([9], cid, in: under).problemCode, is: .unknownInvitation,
          "one nobody made")
        try require(
          try await accept(hashes[1], ada, in: under).get().role, is: .admin,
          "a stronger role stays")
        try require(
          try await accept(hashes[1], bea, in: under).get().role, is: .writer, "a stronger role")
        try require(
          try await accept(hashes[1], cid, in: under).problemCode, is: .unknownInvitation,
          "one used before")
        try require(
          try await store.invitations(to: space.id).map(\.id), is: ["1", "3"], "the rest")
        try require(
          try await accept(hashes[1], bea, in: under).get().role, is: .writer, "the same user again"
        )
        try require(try await revoke("1", by: caller, in: under) == nil, "it was not revoked")
        try require(
          try await revoke("1", by: caller, in: under), is: .unknownInvitation, "revoked twice")
        try require(
          try await accept(hashes[0], cid, in: under).problemCode, is: .unknownInvitation,
          "a revoked one")
      }
    },
    StoreContract("invitations end with the rights of those who know them, and are bounded") {
      under in
      try await under.withSpace { under in
        let (store, space) = (under.store, under.space)
        let (ada, bea) = (try user("ada"), try user("bea"))
        for user in [ada, bea] { try await start(user, .admin, in: under) }
        for number in 0..<Invitation.countMax {
          try require(
            try await add(number, by: number == 0 ? bea : ada, in: under) == nil, "an invitation")
        }
        try require(try await add(200, by: ada, in: under), is: .storageQuota, "one too many")
        try require(
          try await add(201, by: ada, at: SpaceUnderTest.now + 100, in: under) == nil,
          "the expired ones count"
        )
        try require(
          try await add(202, by: bea, at: SpaceUnderTest.now + 100, in: under) == nil, "another")
        // One who leaves invites nobody any more, and the others' invitations stay.
        let left = try await store.setRole(
          nil, of: bea, in: space, by: try caller(bea), at: SpaceUnderTest.now)
        try require(left == nil, "one of two admins")
        try require(try await store.invitations(to: space.id).map(\.id), is: ["201"], "the rest")
        try require(try await add(203, by: bea, in: under), is: .forbidden, "by one who has left")
        // One who is removed may know the codes of all.
        try await start(bea, .writer, in: under)
        let removed = try await store.setRole(
          .reader, of: bea, in: space, by: try caller(ada), at: SpaceUnderTest.now)
        try require(removed == nil, "a weaker role")
        try require(try await store.invitations(to: space.id).isEmpty, "an invitation is left")
      }
    },
    StoreContract("of users who create a space or accept an invitation for one at once, one does") {
      under in
      let one = try await under.open(.standard)
      let two = under.isShared ? try await under.open(.standard) : one
      let (ada, bea) = (try user("ada"), try user("bea"))
      let request = SpaceRequest(space: .name("list"))
      async let first = create(request, ada, in: one)
      async let second = create(request, bea, in: two)
      let made = try await [first, second]
      try require(made.filter { $0 }.count, is: 1, "creators")
      let owner = made[0] ? ada : bea
      let space = try unwrap(try await one.space(named: .name("list")), "the space")
      try require(try await one.members(of: space.id).map(\.user), is: [owner], "the members")
      let hash = [UInt8](repeating: 1, count: 32)
      let invited = try await one.addInvitation(
        invitation("1", .reader, by: owner, isOnce: true), hash: hash, to: space,
        by: MemberCaller(try mark(owner).principal, isByCredential: false))
      try require(invited == nil, "an invitation")
      let (cid, dan) = (try user("cid"), try user("dan"))
      async let third = accepts(hash, cid, in: one)
      async let fourth = accepts(hash, dan, in: two)
      try require(try await [third, fourth].filter { $0 }.count, is: 1, "users of one invitation")
      try require(try await one.members(of: space.id).count, is: 2, "members")
      await one.close()
      if under.isShared { await two.close() }
    },
  ]

  /// Gives a user a first role.
  private static func start(
    _ user: UserID, _ role: Role, in under: SpaceUnderTest
  ) async throws {
    let problem = try await under.store.setRole(
      role, of: user, in: under.space,
      by: MemberCaller(.anonymous, isByCredential: true), at: SpaceUnderTest.now)
    try require(problem == nil, "a first role")
  }

  /// Sets a role as a credential with the role admin does, or as a member.
  private static func set(
    _ role: Role?, _ user: UserID, by member: UserID? = nil, in under: SpaceUnderTest
  ) async throws -> ProblemCode? {
    let author =
      try member.map { try Self.caller($0) } ?? MemberCaller(.anonymous, isByCredential: true)
    let problem = try await under.store.setRole(
      role, of: user, in: under.space, by: author, at: SpaceUnderTest.now)
    return problem?.code
  }

  private static func caller(_ user: UserID) throws -> MemberCaller {
    MemberCaller(try mark(user).principal, isByCredential: false)
  }

  private static func revoke(
    _ id: String, by caller: MemberCaller, in under: SpaceUnderTest
  ) async throws -> ProblemCode? {
    let problem = try await under.store.removeInvitation(
      id, to: under.space, by: caller, at: SpaceUnderTest.now)
    return problem?.code
  }

  private static func accept(
    _ hash: [UInt8], _ user: UserID, in under: SpaceUnderTest
  ) async throws -> Result<Membership, Problem> {
    try await under.store.accept(hash: hash, as: user, by: try mark(user))
  }

  private static func accepts(
    _ hash: [UInt8], _ user: UserID, in store: any SyncStore
  ) async throws -> Bool {
    let answer = try await store.accept(hash: hash, as: user, by: try mark(user))
    return (try? answer.get()) != nil
  }

  private static func create(
    _ request: SpaceRequest, _ user: UserID, in store: any SyncStore
  ) async throws -> Bool {
    try await store.createSpace(request, of: user, by: try mark(user), quota: 9) != nil
  }

  private static func add(
    _ number: Int, by user: UserID, at: Int64 = SpaceUnderTest.now, in under: SpaceUnderTest
  ) async throws -> ProblemCode? {
    var added = invitation("\(number)", .reader, by: user, expiresAt: at + 100)
    added.createdAt = at
    let problem = try await under.store.addInvitation(
      added, hash: [UInt8](repeating: UInt8(number), count: 32), to: under.space,
      by: try caller(user))
    return problem?.code
  }
}
