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

  static let members = [
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
      let again = try await store.createSpace(request, of: bea, by: try mark(bea), quota: 1)
      try require(again == nil, "another user got the space")
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
        func set(
          _ role: Role?, _ user: UserID, byServer: Bool = false
        ) async throws -> ProblemCode? {
          try await store.setRole(
            role, of: user, in: space, isServerAdmin: byServer, by: try mark(ada))?.code
        }
        try require(try await set(.admin, ada) == nil, "the first admin")
        try require(try await set(.writer, bea) == nil, "a writer")
        try require(try await set(.writer, bea) == nil, "the same again")
        try require(try await set(.reader, ada), is: .forbidden, "the last admin, changed")
        try require(try await set(nil, ada), is: .forbidden, "the last admin, ended")
        try require(try await set(nil, ada, byServer: true) == nil, "ended by the server's admin")
        try require(try await set(.admin, ada) == nil, "back again")
        try require(try await set(.admin, bea) == nil, "a second admin")
        try require(try await set(nil, ada) == nil, "one of two admins")
        try require(try await set(nil, ada) == nil, "a user who is no member")
        try require(try await set(nil, bea) == nil, "the last member")
        try require(try await store.members(of: space.id).isEmpty, "somebody is left")
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
        _ = try await store.setRole(
          .admin, of: ada, in: space, isServerAdmin: false, by: try mark(ada))
        let hashes = (1...3).map { [UInt8](repeating: $0, count: 32) }
        let all = [
          invitation("1", .reader, by: ada), invitation("2", .writer, by: ada, isOnce: true),
          invitation("3", .writer, by: ada, expiresAt: SpaceUnderTest.now),
        ]
        for (invitation, hash) in zip(all, hashes) {
          try require(
            try await store.addInvitation(invitation, hash: hash, to: space, by: try mark(ada)),
            "an invitation")
        }
        try require(try await store.invitations(to: space.id), is: all, "the invitations")
        func accept(_ hash: [UInt8], _ user: UserID) async throws -> Result<Membership, Problem> {
          try await store.accept(hash: hash, as: user, by: try mark(user))
        }
        let membership = try await accept(hashes[0], bea).get()
        try require(membership.role, is: .reader, "the role")
        try require(membership.maker, is: ada.text, "who invited")
        try require(try await accept(hashes[0], cid).get().role, is: .reader, "another user's")
        try require(
          try await accept(hashes[2], cid).problemCode, is: .unknownInvitation, "an expired one")
        try require(
          try await accept([9], cid).problemCode, is: .unknownInvitation, "one nobody made")
        try require(
          try await accept(hashes[1], ada).get().role, is: .admin, "a stronger role stays")
        try require(try await accept(hashes[1], bea).get().role, is: .writer, "a stronger role")
        try require(
          try await accept(hashes[1], cid).problemCode, is: .unknownInvitation, "one used before")
        try require(
          try await store.invitations(to: space.id).map(\.id), is: ["1", "3"], "the rest")
        try require(
          try await store.removeInvitation("1", to: space, by: try mark(ada)), "it was not revoked")
        try require(
          try await !store.removeInvitation("1", to: space, by: try mark(ada)), "revoked twice")
        try require(
          try await accept(hashes[0], cid).problemCode, is: .unknownInvitation, "a revoked one")
      }
    },
    StoreContract("invitations end with the rights of their maker, and their number is bounded") {
      under in
      try await under.withSpace { under in
        let (store, space) = (under.store, under.space)
        let (ada, bea) = (try user("ada"), try user("bea"))
        for user in [ada, bea] {
          _ = try await store.setRole(
            .admin, of: user, in: space, isServerAdmin: false, by: try mark(ada))
        }
        func add(_ number: Int, by user: UserID, at: Int64) async throws -> Bool {
          let hash = [UInt8](repeating: UInt8(number), count: 32)
          return try await store.addInvitation(
            invitation("\(number)", .reader, by: user), hash: hash, to: space,
            by: try mark(user, at: at))
        }
        for number in 0..<Invitation.countMax {
          let maker = number == 0 ? bea : ada
          try require(try await add(number, by: maker, at: SpaceUnderTest.now), "an invitation")
        }
        try require(try await !add(200, by: ada, at: SpaceUnderTest.now), "one too many")
        _ = try await store.setRole(
          .writer, of: bea, in: space, isServerAdmin: false, by: try mark(ada))
        try require(
          try await store.invitations(to: space.id).contains { $0.maker == bea.text } == false,
          "an invitation of a user who may not invite")
        try require(
          try await add(201, by: ada, at: SpaceUnderTest.now + 100), "the expired ones count")
        try require(try await store.invitations(to: space.id).count, is: 1, "expired ones")
      }
    },
  ]
}
