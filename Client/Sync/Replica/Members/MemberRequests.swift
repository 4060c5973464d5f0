import FerryNetworking
import FerryProtocol

// The requests about users, members and invitations (SPEC.md §41).
extension SyncAPI {
  // MARK: Of a server

  func ownSpaces() async throws -> OwnSpaces {
    try OwnSpaces(decoding: try await send(.get, "/user").body, limits: limits)
  }

  func createSpace(_ request: SpaceRequest) async throws -> SpaceInfo {
    try SpaceInfo(decoding: try await send(.post, "/spaces", body: request.encoded()).body)
  }

  func accept(code: String) async throws -> Membership {
    let body = AcceptRequest(code: code).encoded()
    return try Membership(
      decoding: try await send(.post, "/invitations", body: body).body, limits: limits)
  }

  // MARK: Of a space

  func members() async throws -> [Member] {
    try MembersAnswer(decoding: try await send(.get, "/members").body, limits: limits).members
  }

  func setRole(_ role: Role?, of user: UserID) async throws {
    _ = try await send(.put, "/members", body: MemberRequest(user: user, role: role).encoded())
  }

  func endMembership() async throws { _ = try await send(.delete, "/membership") }

  func invite(_ request: InvitationRequest) async throws -> Invitation {
    let answer = try await send(.post, "/invitations", body: request.encoded())
    return try Invitation(decoding: answer.body, limits: limits)
  }

  func invitations() async throws -> [Invitation] {
    let answer = try await send(.get, "/invitations")
    return try InvitationsAnswer(decoding: answer.body, limits: limits).invitations
  }

  func revokeInvitation(_ id: String) async throws {
    let isOne = id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    guard isOne, !id.isEmpty else {
      throw ReplicaError.refused(
        Problem(.unknownInvitation, "an invitation's ID has 16 digits from 0 to f"))
    }
    _ = try await send(.delete, "/invitations/\(id)")
  }
}
