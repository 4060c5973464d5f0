import FerryProtocol

/// The caller of a change of members.
package struct MemberCaller: Sendable, Equatable {
  package let principal: Principal
  /// True if the credential itself has the role admin, so no membership is needed.
  package let isByCredential: Bool

  package init(_ principal: Principal, isByCredential: Bool) {
    (self.principal, self.isByCredential) = (principal, isByCredential)
  }
}

// Members and invitations in both stores (SPEC.md §41). Each change takes the lock of the space, looks
// at the caller's role under it, and is in the audit log.
extension SyncStore {
  /// Returns the roles of a user as a member.
  package func roles(of user: UserID) async throws(StoreError) -> [SpaceName: Role] {
    try await plain(.authenticating) { connection in
      let found = try connection.memberships(of: user)
      return Dictionary(found.map { ($0.space, $0.role) }) { first, _ in first }
    }
  }

  /// Returns the memberships of a user, by the name of the space.
  package func memberships(of user: UserID) async throws(StoreError) -> [Membership] {
    try await plain(.reading) { try $0.memberships(of: user) }
  }

  /// Returns the members of a space, by user.
  package func members(of space: Int64) async throws(StoreError) -> [Member] {
    try await plain(.reading) { connection in
      try connection.rows(
        MemberQueries.list, [.integer(space), .integer(Int64(MembersAnswer.countMax))]
      ) { try Member($0) }.compactMap { $0 }
    }
  }

  /// Makes a space with a first admin. Made before by the same user, it stays as it is.
  ///
  /// - Returns: The space; a reason why there cannot be one more; `nil` if another one has the name.
  package func createSpace(
    _ request: SpaceRequest, of user: UserID, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> Result<SpaceSummary, Problem>? {
    let epoch = makeEpoch()
    return try await plain(.writing) { connection in
      try connection.together {
        if let problem = try connection.rule(of: user).fault(of: .admin) {
          return .failure(problem)
        }
        let added = try connection.addSpace(request.space, epoch: epoch, by: mark, quota: quota)
        guard let space = try connection.space(named: request.space) else {
          return .failure(
            Problem(.storageQuota, "you have created \(quota) spaces, the limit of one user"))
        }
        guard added else {
          let isOwn =
            try connection.role(of: user, in: space.id) == .admin
            && connection.isCreator(mark.principal, of: space.id)
          return isOwn ? .success(space) : nil
        }
        try connection.run(MemberQueries.setTitle, [.text(request.title), .integer(space.id)])
        try connection.save(.admin, of: user, in: space, maker: mark.principal.id, by: mark)
        return .success(space)
      }
    }
  }

  /// Gives a member a role, or ends the membership with `nil`. Returns the reason of a refusal. A user who
  /// is no member becomes one if the caller's credential has the role admin.
  package func setRole(
    _ role: Role?, of user: UserID, in space: SpaceSummary, by caller: MemberCaller, at now: Int64
  ) async throws(StoreError) -> Problem? {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.lock(space.id)
        let isOwn = role == nil && caller.principal.user == user
        if !isOwn, let problem = try connection.fault(of: caller, in: space.id) { return problem }
        var rule = try connection.rule(of: user, in: space.id)
        rule.isByCredential = caller.isByCredential
        if rule.former == role { return nil }
        if let problem = rule.fault(of: role) { return problem }
        let mark = AuditMark(caller.principal, at: now)
        let isWeaker = rule.former.map { (role ?? .reader) < $0 || role == nil } ?? false
        if isWeaker, !isOwn {
          // The user may know the codes.
          try connection.run(MemberQueries.removeInvitations, [.integer(space.id)])
        } else if isWeaker {
          try connection.run(
            MemberQueries.removeInvitationsOf, [.integer(space.id), .text(user.text)])
        }
        if let role {
          try connection.save(role, of: user, in: space, maker: mark.principal.id, by: mark)
        } else {
          try connection.run(MemberQueries.remove, [.text(user.text), .integer(space.id)])
          try connection.append(mark.entry(.memberRemoved, space: space.name, user.text))
        }
        return nil
      }
    }
  }

  /// Returns content if a space of which the user is a member has it.
  package func readableBlob(
    _ hash: ContentHash, of user: UserID
  ) async throws(StoreError) -> MissionBlob? {
    try await plain(.reading) { connection in
      try connection.rows(
        MemberQueries.readableBlob, [.bytes(hash.bytes), .text(user.text)]
      ) { MissionBlob(hash: hash, size: try $0.integer(0)) }.first
    }
  }

  // MARK: Invitations

  /// Stores an invitation and the hash of its code. Returns the reason of a refusal.
  package func addInvitation(
    _ invitation: Invitation, hash: [UInt8], to space: SpaceSummary, by caller: MemberCaller
  ) async throws(StoreError) -> Problem? {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.lock(space.id)
        if let problem = try connection.fault(of: caller, in: space.id) { return problem }
        let mark = AuditMark(caller.principal, at: invitation.createdAt)
        try connection.run(
          MemberQueries.endInvitations, [.integer(space.id), .integer(mark.at)])
        let count = try connection.rows(MemberQueries.countInvitations, [.integer(space.id)]) {
          try $0.integer(0)
        }.first
        guard count ?? 0 < Invitation.countMax else {
          return Problem(
            .storageQuota,
            "the space has \(Invitation.countMax) invitations; revoke some of them first")
        }
        try connection.run(
          MemberQueries.addInvitation,
          [
            .bytes(hash), .text(invitation.id), .integer(space.id), .text(invitation.role.rawValue),
            .integer(invitation.isOnce ? 1 : 0), .integer(invitation.createdAt),
            .integer(invitation.expiresAt), .text(invitation.maker),
          ])
        try connection.append(
          mark.entry(
            .invitationCreated, space: space.name, "\(invitation.id) \(invitation.role.rawValue)"))
        return nil
      }
    }
  }

  /// Returns the invitations of a space, oldest first, also expired ones, without used ones.
  package func invitations(to space: Int64) async throws(StoreError) -> [Invitation] {
    try await plain(.reading) { connection in
      try connection.rows(
        MemberQueries.invitations, [.integer(space), .integer(Int64(Invitation.countMax))]
      ) { row in
        guard let role = Role(rawValue: try row.text(1)) else { return nil }
        return Invitation(
          id: try row.text(0), role: role, isOnce: try row.integer(2) != 0,
          createdAt: try row.integer(3), expiresAt: try row.integer(4), maker: try row.text(5))
      }.compactMap { $0 }
    }
  }

  /// Deletes an invitation. Returns the reason of a refusal.
  package func removeInvitation(
    _ id: String, to space: SpaceSummary, by caller: MemberCaller, at now: Int64
  ) async throws(StoreError) -> Problem? {
    try await plain(.writing) { connection in
      try connection.together {
        // An acceptance under way comes before.
        try connection.lock(space.id)
        if let problem = try connection.fault(of: caller, in: space.id) { return problem }
        let count = try connection.run(
          MemberQueries.removeInvitation, [.integer(space.id), .text(id)])
        guard count > 0 else { return .unknownInvitation }
        let mark = AuditMark(caller.principal, at: now)
        try connection.append(mark.entry(.invitationRevoked, space: space.name, id))
        return nil
      }
    }
  }

  /// Makes a user a member by an invitation's code. A member keeps a role that is stronger, and the
  /// invitation then stays. The user of an invitation for one gets the same answer again.
  ///
  /// - Returns: The membership, or the reason of the refusal.
  package func accept(
    hash: [UInt8], as user: UserID, by mark: AuditMark
  ) async throws(StoreError) -> Result<Membership, Problem> {
    try await plain(.writing) { connection in
      try connection.together {
        guard let place = try connection.invitation(hash) else {
          return .failure(.unknownInvitation)
        }
        // Another one may have accepted it while the lock was waited for.
        try connection.lock(place.space.id)
        guard let found = try connection.invitation(hash), mark.at < found.expiresAt,
          found.usedBy == nil || found.usedBy == user.text
        else { return .failure(.unknownInvitation) }
        var rule = try connection.rule(of: user, in: found.space.id)
        rule.isInvited = true
        if found.usedBy == nil, rule.former.map({ $0 < found.role }) ?? true {
          if let problem = rule.fault(of: found.role) { return .failure(problem) }
          try connection.save(
            found.role, of: user, in: found.space, maker: found.maker, by: mark)
          if found.isOnce {
            try connection.run(MemberQueries.useInvitation, [.text(user.text), .bytes(hash)])
          }
        }
        let membership = try connection.memberships(of: user).first {
          $0.space == found.space.name
        }
        return membership.map { .success($0) } ?? .failure(.unknownInvitation)
      }
    }
  }
}

/// An invitation found by its code.
private struct FoundInvitation {
  let space: SpaceSummary
  let role: Role
  let isOnce: Bool
  let expiresAt: Int64
  let maker: String
  let usedBy: String?
}

extension PlainConnection {
  fileprivate func memberships(of user: UserID) throws -> [Membership] {
    try rows(
      MemberQueries.memberships, [.text(user.text), .integer(Int64(OwnSpaces.countMax))]
    ) { row -> Membership? in
      guard let space = SpaceName(try row.text(0)), let role = Role(rawValue: try row.text(2))
      else { return nil }
      return Membership(
        space: space, title: try row.text(1), role: role, since: try row.integer(3),
        maker: try row.text(4))
    }.compactMap { $0 }
  }

  fileprivate func role(of user: UserID, in space: Int64) throws -> Role? {
    try rows(MemberQueries.role, [.text(user.text), .integer(space)]) { try $0.text(0) }.first
      .flatMap { Role(rawValue: $0) }
  }

  fileprivate func isCreator(_ principal: Principal, of space: Int64) throws -> Bool {
    try rows(MemberQueries.creator, [.integer(space)]) { try $0.optionalText(0) }.first
      == principal.account.id
  }

  /// Returns the reason why a caller may not change members, or `nil`. The role may have changed since
  /// the caller was admitted.
  fileprivate func fault(of caller: MemberCaller, in space: Int64) throws -> Problem? {
    if caller.isByCredential { return nil }
    if let user = caller.principal.user, try role(of: user, in: space) == .admin { return nil }
    return Problem(.forbidden, "you are no admin of the space any more")
  }

  /// Returns the facts about a user; without a space, those about a new one.
  fileprivate func rule(of user: UserID, in space: Int64? = nil) throws -> MemberRule {
    let spaces = try rows(MemberQueries.countSpaces, [.text(user.text)]) { try $0.integer(0) }.first
    guard let space else {
      return MemberRule(members: 0, admins: 0, former: nil, isInvited: true, spaces: spaces ?? 0)
    }
    let counts = try rows(MemberQueries.counts, [.integer(space)]) {
      (try $0.integer(0), try $0.integer(1))
    }.first
    return MemberRule(
      members: counts?.0 ?? 0, admins: counts?.1 ?? 0, former: try role(of: user, in: space),
      spaces: spaces ?? 0)
  }

  /// Writes the role of a user, and the entry in the audit log.
  fileprivate func save(
    _ role: Role, of user: UserID, in space: SpaceSummary, maker: String, by mark: AuditMark
  ) throws {
    let former = try self.role(of: user, in: space.id)
    try run(
      MemberQueries.save,
      [
        .text(user.text), .integer(space.id), .text(role.rawValue), .integer(mark.at), .text(maker),
      ])
    let change = former == nil ? AuditAction.memberAdded : .memberChanged
    try append(mark.entry(change, space: space.name, "\(role.rawValue) \(user.text)"))
  }

  fileprivate func invitation(_ hash: [UInt8]) throws -> FoundInvitation? {
    let found = try rows(MemberQueries.find, [.bytes(hash)]) { row -> FoundInvitation? in
      guard let name = SpaceName(try row.text(0)), let role = Role(rawValue: try row.text(2))
      else { return nil }
      let space = SpaceSummary(id: try row.integer(1), name: name, epoch: Epoch(0), head: 0)
      return FoundInvitation(
        space: space, role: role, isOnce: try row.integer(3) != 0, expiresAt: try row.integer(4),
        maker: try row.text(5), usedBy: try row.optionalText(6))
    }
    return found.first ?? nil
  }
}

extension Member {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let user = UserID(try row.text(0)), let role = Role(rawValue: try row.text(1))
    else { return nil }
    self.init(user: user, role: role, since: try row.integer(2), maker: try row.text(3))
  }
}

extension Problem {
  /// One answer for codes that never were, are used up, revoked or expired: nobody learns which.
  static let unknownInvitation = Problem(
    .unknownInvitation, "the invitation has ended, or was never made; ask for another one")
}

private enum MemberQueries {
  static let memberships = PlainStatement(
    "memberships",
    """
    SELECT n.name, n.title, m.role, m.since, m.made_by FROM members AS m
    JOIN space_names AS n ON n.id = m.space WHERE m.principal = $1 ORDER BY n.name LIMIT $2
    """)
  static let list = PlainStatement(
    "members_list",
    """
    SELECT principal, role, since, made_by FROM members WHERE space = $1 ORDER BY principal LIMIT $2
    """)
  static let role = PlainStatement(
    "member_role", "SELECT role FROM members WHERE principal = $1 AND space = $2")
  static let creator = PlainStatement(
    "space_creator", "SELECT creator FROM space_names WHERE id = $1")
  static let counts = PlainStatement(
    "members_count",
    """
    SELECT count(*), count(CASE WHEN role = 'admin' THEN 1 END) FROM members WHERE space = $1
    """)
  static let countSpaces = PlainStatement(
    "memberships_count", "SELECT count(*) FROM members WHERE principal = $1")
  static let save = PlainStatement(
    "member_save",
    """
    INSERT INTO members(principal, space, role, since, made_by) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT(principal, space) DO UPDATE SET role = excluded.role
    """)
  static let remove = PlainStatement(
    "member_remove", "DELETE FROM members WHERE principal = $1 AND space = $2")
  static let setTitle = PlainStatement(
    "space_title_save", "UPDATE space_names SET title = $1 WHERE id = $2")
  static let readableBlob = PlainStatement(
    "mission_blob_member",
    """
    SELECT b.size FROM members AS m JOIN mission_blobs AS b ON b.space = m.space
    WHERE b.sha256 = $1 AND b.mission <> '' AND m.principal = $2 LIMIT 1
    """)

  static let addInvitation = PlainStatement(
    "invitation_add",
    """
    INSERT INTO invitations(hash, id, space, role, once, created_at, expires_at, made_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    """)
  static let countInvitations = PlainStatement(
    "invitations_count", "SELECT count(*) FROM invitations WHERE space = $1 AND used_by IS NULL")
  static let endInvitations = PlainStatement(
    "invitations_end", "DELETE FROM invitations WHERE space = $1 AND expires_at <= $2")
  static let invitations = PlainStatement(
    "invitations_list",
    """
    SELECT id, role, once, created_at, expires_at, made_by FROM invitations
    WHERE space = $1 AND used_by IS NULL ORDER BY created_at, id LIMIT $2
    """)
  static let removeInvitation = PlainStatement(
    "invitation_remove",
    "DELETE FROM invitations WHERE space = $1 AND id = $2 AND used_by IS NULL")
  static let removeInvitations = PlainStatement(
    "invitations_remove", "DELETE FROM invitations WHERE space = $1")
  static let removeInvitationsOf = PlainStatement(
    "invitations_remove_own", "DELETE FROM invitations WHERE space = $1 AND made_by = $2")
  static let find = PlainStatement(
    "invitation_find",
    """
    SELECT n.name, i.space, i.role, i.once, i.expires_at, i.made_by, i.used_by FROM invitations AS i
    JOIN space_names AS n ON n.id = i.space WHERE i.hash = $1
    """)
  static let useInvitation = PlainStatement(
    "invitation_use", "UPDATE invitations SET used_by = $1 WHERE hash = $2")
}
