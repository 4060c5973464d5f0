import FerryCryptography
import FerryHTTPServer
import FerryProtocol

/// Answers requests about users, members and invitations (SPEC.md §41).
struct MemberHandler: Sendable {
  let core: ServiceCore
  let gate: AccessGate
  /// The names of spaces that every user may create; `nil` for none.
  let userSpaces: SpacePattern?

  // MARK: The caller's own spaces

  func ownSpaces(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    guard let user = caller.principal.user else {
      return .json(OwnSpaces(user: nil, spaces: []).encoded())
    }
    let spaces = try await core.ask { (store) async throws(StoreError) in
      try await store.memberships(of: user)
    }
    return .json(OwnSpaces(user: user, spaces: spaces).encoded())
  }

  func createSpace(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let request = try core.read(context.request.body, SpaceRequest.init(decoding:limits:))
    let user = try Self.user(caller)
    guard
      userSpaces?.covers(SpacePattern(request.space)) == true
        || caller.grants.role(in: request.space) == .admin
    else {
      throw Problem(
        .forbidden,
        userSpaces.map { "on this server users create spaces with names as \($0)" }
          ?? "on this server only admins create spaces (ferryd serve --create-spaces NAMES)")
    }
    let (quota, mark) = (core.quotas.spaces, core.mark(caller.principal))
    let created = try await core.ask { (store) async throws(StoreError) in
      try await store.createSpace(request, of: user, by: mark, quota: quota)
    }
    guard let created else {
      throw Problem(.forbidden, "there is a space \(request.space); choose another name")
    }
    let space = try created.get()
    gate.forgetMemberships(of: user)
    return .json(core.info(space, .admin), status: 201)
  }

  func accept(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let text = try core.read(context.request.body, AcceptRequest.init(decoding:limits:)).code
    let user = try Self.user(caller)
    guard let code = InvitationCode(text) else { throw .unknownInvitation }
    let mark = core.mark(caller.principal)
    let membership = try await core.ask { (store) async throws(StoreError) in
      try await store.accept(hash: code.hash, as: user, by: mark)
    }.get()
    gate.forgetMemberships(of: user)
    return .json(membership.encoded())
  }

  private static func user(_ caller: Identity) throws(Problem) -> UserID {
    guard let user = caller.principal.user else {
      throw Problem(
        .forbidden,
        "this needs a user: a token with an owner (ferryd token create --owner NAME), or a JSON "
          + "Web Token")
    }
    return user
  }

  // MARK: Members

  func members(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let space = try await core.find(name)
    let members = try await core.ask { (store) async throws(StoreError) in
      try await store.members(of: space.id)
    }
    return .json(MembersAnswer(members: members).encoded())
  }

  func setRole(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let request = try core.read(context.request.body, MemberRequest.init(decoding:limits:))
    try await setRole(request.role, of: request.user, in: name, by: Self.caller(admission))
    return Self.done
  }

  /// Ends the caller's own membership. A user who is no member has the same answer, also for a space
  /// that is not there.
  func leave(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let name = try RequestAccess.space(named: context.match.spaceText ?? "")
    let user = try Self.user(caller)
    guard caller.memberships[name] != nil else { return Self.done }
    try await setRole(
      nil, of: user, in: name, by: MemberCaller(caller.principal, isByCredential: false))
    return Self.done
  }

  private static let done = HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])

  private func setRole(
    _ role: Role?, of user: UserID, in name: SpaceName, by caller: MemberCaller
  ) async throws(Problem) {
    let space = try await core.find(name)
    let now = core.clock.wall()
    let problem = try await core.ask { (store) async throws(StoreError) in
      try await store.setRole(role, of: user, in: space, by: caller, at: now)
    }
    if let problem { throw problem }
    gate.forgetMemberships(of: user)
  }

  /// Returns the caller of a change. Changes by an open server's visitors would count for ever.
  private static func caller(_ admission: Admission) throws(Problem) -> MemberCaller {
    guard admission.principal != .anonymous else {
      throw Problem(
        .forbidden, "an open server has no members; create a token first (ferryd token create)")
    }
    return MemberCaller(admission.principal, isByCredential: !admission.isByMembership)
  }

  // MARK: Invitations

  func invitations(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let space = try await core.find(name)
    let now = core.clock.wall()
    let found = try await core.ask { (store) async throws(StoreError) in
      try await store.invitations(to: space.id)
    }
    return .json(InvitationsAnswer(invitations: found.filter { now < $0.expiresAt }).encoded())
  }

  func invite(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let request = try core.read(context.request.body, InvitationRequest.init(decoding:limits:))
    let space = try await core.find(name)
    let caller = try Self.caller(admission)
    let now = core.clock.wall()
    var random = SystemRandomNumberGenerator()
    let code = InvitationCode(random: &random)
    let hash = code.hash
    var invitation = Invitation(
      id: Hexadecimal.text(hash.prefix(8)), role: request.role, isOnce: request.isOnce,
      createdAt: now, expiresAt: now + request.lifetime * 1_000, maker: caller.principal.id)
    let problem = try await core.ask { [invitation] (store) async throws(StoreError) in
      try await store.addInvitation(invitation, hash: hash, to: space, by: caller)
    }
    if let problem { throw problem }
    invitation.code = code.text
    return .json(invitation.encoded(), status: 201)
  }

  func revokeInvitation(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let id = context.match.itemText ?? ""
    let space = try await core.find(name)
    let (caller, now) = (try Self.caller(admission), core.clock.wall())
    let problem = try await core.ask { (store) async throws(StoreError) in
      try await store.removeInvitation(id, to: space, by: caller, at: now)
    }
    if let problem { throw problem }
    return Self.done
  }
}
