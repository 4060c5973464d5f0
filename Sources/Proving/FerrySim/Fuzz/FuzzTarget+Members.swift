import FerryProtocol

extension FuzzTarget {
  /// The messages about users, members and invitations (SPEC.md §41).
  static let memberships: [FuzzTarget] = [
    ownSpaces, members, memberRequest, spaceRequest, invitationRequest, invitation, invitations,
    acceptance, membership,
  ]

  private static let ownSpaces = codec("own-spaces", ["members/own-spaces.json"]) {
    bytes throws(MalformedMessage) in
    try OwnSpaces(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let members = codec("members", ["members/members.json"]) {
    bytes throws(MalformedMessage) in
    try MembersAnswer(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let memberRequest = codec("member-request", ["members/member-request.json"]) {
    bytes throws(MalformedMessage) in
    try MemberRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let spaceRequest = codec("space-request", ["members/space-request.json"]) {
    bytes throws(MalformedMessage) in
    try SpaceRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let invitationRequest = codec(
    "invitation-request", ["members/invitation-request.json"]
  ) {
    bytes throws(MalformedMessage) in
    try InvitationRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let invitation = codec("invitation", ["members/invitation.json"]) {
    bytes throws(MalformedMessage) in
    try Invitation(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let invitations = codec("invitations", ["members/invitations.json"]) {
    bytes throws(MalformedMessage) in
    try InvitationsAnswer(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let acceptance = codec("accept", ["members/accept.json"]) {
    bytes throws(MalformedMessage) in
    try AcceptRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let membership = codec("membership", ["members/membership.json"]) {
    bytes throws(MalformedMessage) in
    try Membership(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }
}
