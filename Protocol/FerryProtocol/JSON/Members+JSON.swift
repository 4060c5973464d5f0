extension UserID: JSONString {
  package static var textRule: String {
    "a user is owner: and a name, or jwt:, an issuer, # and a subject"
  }
}

extension Membership: JSONMessage {
  package static var blank: Self {
    Self(space: .blank, title: "", role: .reader, since: 0, maker: "")
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("space", &space)
    try json.required("title", &title)
    try json.required("role", &role)
    try json.required("since", &since, as: .wallTime)
    try json.required("by", &maker)
  }
}

extension OwnSpaces: JSONMessage {
  package static var blank: Self { Self(user: nil, spaces: []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("user", &user, as: JSONForm.value.nullable)
    try json.required("spaces", &spaces, as: .list(max: Self.countMax, "spaces"))
  }
}

extension Member: JSONMessage {
  package static var blank: Self { Self(user: .blank, role: .reader, since: 0, maker: "") }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("user", &user)
    try json.required("role", &role)
    try json.required("since", &since, as: .wallTime)
    try json.required("by", &maker)
  }
}

extension MembersAnswer: JSONMessage {
  package static var blank: Self { Self(members: []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("members", &members, as: .list(max: Self.countMax, "members"))
  }
}

extension MemberRequest: JSONMessage {
  package static var blank: Self { Self(user: .blank, role: nil) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("user", &user)
    try json.required(
      "role", &role, as: JSONForm.value.nullable,
      missing: "the user's role, or null to end the membership, is missing")
  }
}

extension SpaceRequest: JSONMessage {
  package static var blank: Self { Self(space: .blank) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("space", &space)
    try json.defaulted("title", &title)
    try json.check(fault)
  }
}

extension InvitationRequest: JSONMessage {
  package static var blank: Self { Self(role: .reader) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("role", &role)
    try json.defaulted("expiresIn", &lifetime)
    try json.defaulted("once", &isOnce)
    try json.check(
      (1...Self.secondsMax).contains(lifetime),
      "an invitation is valid for 1 to \(Self.secondsMax) seconds")
  }
}

extension Invitation: JSONMessage {
  package static var blank: Self {
    Self(id: "", role: .reader, isOnce: false, createdAt: 0, expiresAt: 0, maker: "")
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("id", &id)
    try json.required("role", &role)
    try json.required("once", &isOnce)
    try json.required("createdAt", &createdAt, as: .wallTime)
    try json.required("expiresAt", &expiresAt, as: .wallTime)
    try json.required("by", &maker)
    try json.optional("code", &code)
  }
}

extension InvitationsAnswer: JSONMessage {
  package static var blank: Self { Self(invitations: []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required(
      "invitations", &invitations, as: .list(max: Invitation.countMax, "invitations"))
  }
}

extension AcceptRequest: JSONMessage {
  package static var blank: Self { Self(code: "") }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("code", &code)
  }
}
