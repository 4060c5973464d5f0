import FerryProtocol

// Members and invitations in both stores (SPEC.md §41). Each change takes the lock of the space, and
// is in the audit log.
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
      ) { row in try Member(row, user: 0) }.compactMap { $0 }
    }
  }

  /// Makes a space with a first admin. Returns it; `nil` if there is a space of this name, or a reason
  /// why there cannot be one more.
  package func createSpace(
    _ request: SpaceRequest, of user: UserID, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> Result<SpaceSummary, Problem>? {
    let epoch = makeEpoch()
    return try await plain(.writing) { connection in
      try connection.together {
        if try connection.spaceNumber(named: request.space) != nil { return nil }
        let created = try connection.createSpace(
          request.space, epoch: epoch, by: mark, quota: quota)
        guard let space = created else {
          return .failure(
            Problem(
              .storageQuota, "you have created \(quota) spaces, the limit of one user"))
        }
        try connection.run(MemberQueries.setTitle, [.text(request.title), .integer(space.id)])
        if let problem = try connection.setRole(.admin, of: user, in: space, by: mark) {
          return .failure(problem)
        }
        return .success(space)
      }
    }
  }

  /// Gives a user a role, or ends the membership with `nil`. Returns the reason of a refusal.
  ///
  /// - Parameter isServerAdmin: Whether an admin of the server makes the change.
  package func setRole(
    _ role: Role?, of user: UserID, in space: SpaceSummary, isServerAdmin: Bool, by mark: AuditMark
  ) async throws(StoreError) -> Problem? {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.lock(space.id)
        return try connection.setRole(
          role, of: user, in: space, isServerAdmin: isServerAdmin, by: mark)
      }
    }
  }

  // MARK: Invitations

  /// Stores an invitation and the hash of its code. Returns `false` if the space has too many.
  package func addInvitation(
    _ invitation: Invitation, hash: [UInt8], to space: SpaceSummary, by mark: AuditMark
  ) async throws(StoreError) -> Bool {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.lock(space.id)
        try connection.run(
          MemberQueries.endInvitations, [.integer(space.id), .integer(mark.at)])
        let count = try connection.rows(MemberQueries.countInvitations, [.integer(space.id)]) {
          try $0.integer(0)
        }.first
        guard count ?? 0 < Invitation.countMax else { return false }
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
        return true
      }
    }
  }

  /// Returns the invitations of a space, oldest first, also expired ones.
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

  /// Deletes an invitation. Returns `true` if there was one.
  package func removeInvitation(
    _ id: String, to space: SpaceSummary, by mark: AuditMark
  ) async throws(StoreError) -> Bool {
    try await plain(.writing) { connection in
      try connection.together {
        let count = try connection.run(
          MemberQueries.removeInvitation, [.integer(space.id), .text(id)])
        guard count > 0 else { return false }
        try connection.append(mark.entry(.invitationRevoked, space: space.name, id))
        return true
      }
    }
  }

  /// Makes a user a member by an invitation's code. A member keeps a role that is stronger, and the
  /// invitation then stays.
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
        guard let found = try connection.invitation(hash), mark.at < found.expiresAt else {
          return .failure(.unknownInvitation)
        }
        let former = try connection.role(of: user, in: found.space.id)
        if former.map({ $0 < found.role }) ?? true {
          if let problem = try connection.setRole(
            found.role, of: user, in: found.space, maker: found.maker, by: mark)
          {
            return .failure(problem)
          }
          if found.isOnce { try connection.run(MemberQueries.useInvitation, [.bytes(hash)]) }
        }
        let membership = try connection.memberships(of: user).first {
          $0.space == found.space.name
        }
        guard let membership else { throw StoreError.spaceGone }
        return .success(membership)
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

  /// Gives a user a role within the transaction under way.
  fileprivate func setRole(
    _ role: Role?, of user: UserID, in space: SpaceSummary, isServerAdmin: Bool = false,
    maker: String? = nil, by mark: AuditMark
  ) throws -> Problem? {
    let former = try self.role(of: user, in: space.id)
    if former == role { return nil }
    let counts = try rows(MemberQueries.counts, [.integer(space.id)]) {
      (try $0.integer(0), try $0.integer(1))
    }.first
    let spaces = try rows(MemberQueries.countSpaces, [.text(user.text)]) { try $0.integer(0) }.first
    let rule = MemberRule(
      members: counts?.0 ?? 0, admins: counts?.1 ?? 0, former: former, spaces: spaces ?? 0,
      isByServerAdmin: isServerAdmin)
    if let problem = rule.fault(of: role) { return problem }
    if former == .admin {
      // Who may not invite any more has invited nobody else.
      try run(MemberQueries.removeInvitationsOf, [.integer(space.id), .text(user.text)])
    }
    guard let role else {
      try run(MemberQueries.remove, [.text(user.text), .integer(space.id)])
      try append(mark.entry(.memberRemoved, space: space.name, user.text))
      return nil
    }
    try run(
      MemberQueries.save,
      [
        .text(user.text), .integer(space.id), .text(role.rawValue), .integer(mark.at),
        .text(maker ?? mark.principal.id),
      ])
    let change = former == nil ? AuditAction.memberAdded : .memberChanged
    try append(mark.entry(change, space: space.name, "\(role.rawValue) \(user.text)"))
    return nil
  }

  fileprivate func invitation(_ hash: [UInt8]) throws -> FoundInvitation? {
    let found = try rows(MemberQueries.find, [.bytes(hash)]) { row -> FoundInvitation? in
      guard let name = SpaceName(try row.text(0)), let role = Role(rawValue: try row.text(2))
      else { return nil }
      let space = SpaceSummary(id: try row.integer(1), name: name, epoch: Epoch(0), head: 0)
      return FoundInvitation(
        space: space, role: role, isOnce: try row.integer(3) != 0, expiresAt: try row.integer(4),
        maker: try row.text(5))
    }
    return found.first ?? nil
  }
}

extension Member {
  /// Reads a member from a row that has the user in a column, and the others behind it.
  fileprivate init?(_ row: any PlainRow, user: Int) throws {
    guard let name = UserID(try row.text(user)), let role = Role(rawValue: try row.text(user + 1))
    else { return nil }
    self.init(
      user: name, role: role, since: try row.integer(user + 2), maker: try row.text(user + 3))
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

  static let addInvitation = PlainStatement(
    "invitation_add",
    """
    INSERT INTO invitations(hash, id, space, role, once, created_at, expires_at, made_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    """)
  static let countInvitations = PlainStatement(
    "invitations_count", "SELECT count(*) FROM invitations WHERE space = $1")
  static let endInvitations = PlainStatement(
    "invitations_end", "DELETE FROM invitations WHERE space = $1 AND expires_at <= $2")
  static let invitations = PlainStatement(
    "invitations_list",
    """
    SELECT id, role, once, created_at, expires_at, made_by FROM invitations
    WHERE space = $1 ORDER BY created_at, id LIMIT $2
    """)
  static let removeInvitation = PlainStatement(
    "invitation_remove", "DELETE FROM invitations WHERE space = $1 AND id = $2")
  static let removeInvitationsOf = PlainStatement(
    "invitations_remove", "DELETE FROM invitations WHERE space = $1 AND made_by = $2")
  static let find = PlainStatement(
    "invitation_find",
    """
    SELECT n.name, i.space, i.role, i.once, i.expires_at, i.made_by FROM invitations AS i
    JOIN space_names AS n ON n.id = i.space WHERE i.hash = $1
    """)
  static let useInvitation = PlainStatement(
    "invitation_use", "DELETE FROM invitations WHERE hash = $1")
}
