/// A user's membership in a space (SPEC.md §41).
public struct Membership: Sendable, Equatable {
  /// The space.
  public var space: SpaceName
  /// The title for people; empty without one.
  public var title: String
  /// The user's role as a member.
  public var role: Role
  /// The wall clock at the begin, milliseconds since 1970.
  public var since: Int64
  /// The principal that made the user a member.
  public var maker: String

  /// Creates a membership from the given parts.
  public init(space: SpaceName, title: String, role: Role, since: Int64, maker: String) {
    (self.space, self.title, self.role) = (space, title, role)
    (self.since, self.maker) = (since, maker)
  }
}

/// The answer to `GET /v1/user`: the caller, and the caller's spaces.
public struct OwnSpaces: Sendable, Equatable {
  /// Spaces of a user at most.
  package static let countMax = 1_000

  /// The caller; `nil` for a token without an owner.
  public var user: UserID?
  /// By name.
  public var spaces: [Membership]

  package init(user: UserID?, spaces: [Membership]) { (self.user, self.spaces) = (user, spaces) }
}

/// A member of a space.
public struct Member: Sendable, Equatable {
  /// The user.
  public var user: UserID
  /// The role as a member.
  public var role: Role
  /// The wall clock at the begin, milliseconds since 1970.
  public var since: Int64
  /// The principal that made the user a member.
  public var maker: String

  /// Creates a member from the given parts.
  public init(user: UserID, role: Role, since: Int64, maker: String) {
    (self.user, self.role, self.since, self.maker) = (user, role, since, maker)
  }
}

/// The answer to `GET …/members`.
package struct MembersAnswer: Sendable, Equatable {
  /// Members of a space at most.
  package static let countMax = 10_000

  /// By user.
  package var members: [Member]

  package init(members: [Member]) { self.members = members }
}

/// The content of `PUT …/members`: a user's role from now on.
package struct MemberRequest: Sendable, Equatable {
  package var user: UserID
  /// The role; `nil` ends the membership.
  package var role: Role?

  package init(user: UserID, role: Role?) { (self.user, self.role) = (user, role) }
}

/// The content of `POST /v1/spaces`: a space to create.
package struct SpaceRequest: Sendable, Equatable {
  /// Bytes of a title at most.
  package static let titleBytesMax = 200

  package var space: SpaceName
  /// For people; may be empty.
  package var title: String

  package init(space: SpaceName, title: String = "") { (self.space, self.title) = (space, title) }

  /// The reason why there can be no such space, or `nil`.
  package var fault: String? {
    if title.utf8.count > Self.titleBytesMax {
      return "a title has at most \(Self.titleBytesMax) bytes"
    }
    return ReadableName.hiddenScalar(in: title).map {
      "the title contains \($0), which is not a visible character"
    }
  }
}

/// The content of `POST …/invitations`.
package struct InvitationRequest: Sendable, Equatable {
  /// The longest validity in seconds: a year.
  package static let secondsMax: Int64 = 31_536_000
  /// The validity without a request: 7 days, in seconds.
  package static let secondsDefault: Int64 = 604_800

  package var role: Role
  /// Seconds of validity.
  package var lifetime = secondsDefault
  /// True if one user alone may accept it.
  package var isOnce = false

  package init(role: Role, lifetime: Int64 = secondsDefault, isOnce: Bool = false) {
    (self.role, self.lifetime, self.isOnce) = (role, lifetime, isOnce)
  }
}

/// An invitation to a space.
public struct Invitation: Sendable, Equatable {
  /// Invitations of a space at most.
  package static let countMax = 100

  /// A permanent name: 16 hexadecimal digits.
  public var id: String
  /// The role that the invited users get.
  public var role: Role
  /// True if one user alone may accept it.
  public var isOnce: Bool
  /// The wall clock at the making, milliseconds since 1970.
  public var createdAt: Int64
  /// The wall clock from which on it is refused.
  public var expiresAt: Int64
  /// The principal that invites.
  public var maker: String
  /// The secret; `nil` except in the answer to the making.
  public var code: String?

  package init(
    id: String, role: Role, isOnce: Bool, createdAt: Int64, expiresAt: Int64, maker: String,
    code: String? = nil
  ) {
    (self.id, self.role, self.isOnce) = (id, role, isOnce)
    (self.createdAt, self.expiresAt, self.maker) = (createdAt, expiresAt, maker)
    self.code = code
  }
}

/// The answer to `GET …/invitations`.
package struct InvitationsAnswer: Sendable, Equatable {
  /// Oldest first.
  package var invitations: [Invitation]

  package init(invitations: [Invitation]) { self.invitations = invitations }
}

/// The content of `POST /v1/invitations`: the acceptance of an invitation.
package struct AcceptRequest: Sendable, Equatable {
  package var code: String

  package init(code: String) { self.code = code }
}
