import FerryNetworking
import FerryPlatform
import FerryProtocol

/// The members of a space, and invitations to it. Get them with ``Replica/members``.
///
/// All calls ask the server, and throw ``ReplicaError``: ``ReplicaError/offline(_:)`` without a network,
/// ``ReplicaError/refused(_:)`` with the server's reason.
///
/// ```swift
/// let invitation = try await replica.members.invite(as: .writer)
/// print(invitation.link)  // https://sync.example.org/join#K7Q2M-0TN4R-…
/// ```
public struct Members: Sendable {
  let replica: Replica

  /// Returns the members of the space, by user.
  public func all() async throws -> [Member] {
    try await asking { try await $0.members() }
  }

  /// Gives a user a role. A user without one becomes a member. Needs the role admin.
  public func set(_ role: Role, for user: UserID) async throws {
    try await asking { try await $0.setRole(role, of: user) }
  }

  /// Ends the membership of a user. Needs the role admin. The user's devices keep their rows, and get and
  /// send nothing any more.
  public func remove(_ user: UserID) async throws {
    try await asking { try await $0.setRole(nil, of: user) }
  }

  /// Ends the membership of this replica's user. ``Spaces/leave(_:discardingChanges:endingMembership:)`` also deletes the
  /// rows on this device.
  public func endOwn() async throws {
    try await asking { try await $0.endMembership() }
  }

  /// An invitation with the link to send.
  public struct Invited: Sendable, Equatable {
    /// The invitation; its code is in this answer only.
    public let invitation: Invitation
    /// The server and the code as one text.
    public let link: InvitationLink
  }

  /// Creates an invitation. Needs the role admin.
  ///
  /// - Parameters:
  ///   - role: the role of users who accept it.
  ///   - validity: 1 second to 365 days.
  ///   - isOnce: true if one user alone may accept it.
  public func invite(
    as role: Role, for validity: Duration = .seconds(604_800),
    isOnce: Bool = false
  ) async throws -> Invited {
    let server = try await replica.serverURL()
    let request = InvitationRequest(
      role: role, lifetime: validity.components.seconds, isOnce: isOnce)
    let invitation = try await asking { try await $0.invite(request) }
    return Invited(
      invitation: invitation,
      link: InvitationLink(server: server, code: invitation.code ?? ""))
  }

  /// Returns the invitations in force, oldest first, without codes. Needs the role admin.
  public func invitations() async throws -> [Invitation] {
    try await asking { try await $0.invitations() }
  }

  /// Revokes an invitation. Users who have accepted it stay members. Needs the role admin.
  ///
  /// - Parameter id: ``Invitation/id``.
  public func revoke(_ id: String) async throws {
    try await asking { try await $0.revokeInvitation(id) }
  }

  private func asking<T: Sendable>(
    _ body: @Sendable (SyncAPI) async throws -> T
  ) async throws -> T {
    let engine = replica.engine
    return try await ReplicaError.converting {
      let api = try await engine.api()
      return try await engine.retrying { try await body(api) }
    }
  }
}

extension Replica {
  /// The members of this replica's space.
  public var members: Members { Members(replica: self) }

  /// Returns the token of this replica for a server; `nil` for another server.
  package func storedToken(for url: String) async throws -> String? {
    try await ReplicaError.converting {
      guard let own = try await thread.run({ try $0.identity().server })?.url,
        ServerAddress.isSame(own, url)
      else { return nil }
      return try await thread.run { [engine] in try engine.access($0) }.token()
    }
  }

  fileprivate func serverURL() async throws -> String {
    try await ReplicaError.converting {
      guard let address = try await thread.run({ try $0.identity().server }) else {
        throw ReplicaError.notConfigured
      }
      return address.url
    }
  }
}

extension Spaces {
  /// Returns the user of this replica's token, and the user's spaces on the server, by name. Spaces that
  /// the token alone permits are not among them.
  ///
  /// ```swift
  /// for space in try await replica.spaces.mine().spaces { print(space.title, space.role) }
  /// ```
  public func mine() async throws -> OwnSpaces {
    try await asking { try await $0.ownSpaces() }
  }

  /// Creates a space on the server, with this replica's user as admin, and joins it with this file.
  ///
  /// - Parameters:
  ///   - name: 1 to 63 characters of `A-Z a-z 0-9 . _ -`.
  ///   - title: the title for people, 200 bytes at most.
  /// - Throws: ``ReplicaError/refused(_:)`` if there is a space of this name, or if the server lets
  ///   only admins create spaces.
  @discardableResult
  public func create(_ name: String, title: String = "") async throws -> Replica {
    try checkIsFirst()
    guard let space = SpaceName(name) else {
      throw ReplicaError.refused(
        Problem(.unknownSpace, "'\(name)' is not a space's name: 1 to 63 of A-Z a-z 0-9 . _ -"))
    }
    let request = SpaceRequest(space: space, title: title)
    _ = try await asking { try await $0.createSpace(request) }
    return try await enter(name, server: replica.serverURL())
  }

  /// Accepts an invitation, and joins its space with this file.
  ///
  /// - Parameter invitation: the link or the code.
  /// - Throws: ``ReplicaError/refused(_:)`` if there is no such invitation any more;
  ///   ``ReplicaError/badAddress(_:)`` if the link is for another server: the token of this replica goes
  ///   to no other server. ``ReplicaError/cannotJoin(space:_:)`` if the file has a space of this name on
  ///   another server; the membership stays.
  @discardableResult
  public func accept(_ invitation: String) async throws -> Replica {
    try checkIsFirst()
    let link = InvitationLink(invitation)
    let url = try await replica.serverURL()
    if let link, !ServerAddress.isSame(link.server, url) {
      throw ReplicaError.badAddress(
        "the invitation is for \(link.server), and this replica syncs with \(url)")
    }
    let code = link?.code ?? invitation
    let membership = try await asking { try await $0.accept(code: code) }
    return try await enter(membership.space.value, server: url)
  }

  /// Returns the replica of a space of which the user is a member. Joins it if the file has not.
  ///
  /// - Parameter token: the token of the space; `nil` for those of this replica, if the server is the same.
  /// - Throws: ``ReplicaError/cannotJoin(space:_:)`` if the file has a space of this name on another
  ///   server.
  package func enter(
    _ space: String, server url: String, token: TokenSource? = nil,
    certificateAuthorities: String? = nil
  ) async throws -> Replica {
    var spaces: [(number: Int, address: ServerAddress?)] = []
    for present in try await [replica] + replicas() {
      spaces.append((present.number, try await present.status().server))
    }
    switch SpaceEntry(space: space, server: url).step(of: spaces) {
    case .present(1): return replica
    case .refuse(let other):
      throw ReplicaError.cannotJoin(
        space: space, "this file has another space of this name, on \(other); use another file")
    case .present, .join: break
    }
    return try await join(
      space, server: url, token: token, certificateAuthorities: certificateAuthorities)
  }

  private func asking<T: Sendable>(
    _ body: @Sendable (SyncAPI) async throws -> T
  ) async throws -> T {
    let engine = replica.engine
    return try await ReplicaError.converting {
      let access = try await replica.thread.run { try engine.access($0) }
      let api = engine.api(of: access, scope: .server)
      return try await engine.retrying { try await body(api) }
    }
  }
}

/// The requests of a user whose file takes part in no space yet.
package struct UserAccount: Sendable {
  private let api: SyncAPI

  /// - Throws: ``ReplicaError/badAddress(_:)``.
  package init(
    _ url: String, token: String?, certificateAuthorities: String? = nil,
    transport: any Transport = SystemTransport(),
    in surroundings: ReplicaSurroundings = .system
  ) throws {
    // The requests name no space.
    let address = try ServerAddress(
      checking: url, space: "none", certificateAuthorities: certificateAuthorities)
    api = SyncAPI(
      ServerAccess(address: address, token: token), transport: transport,
      surroundings: surroundings, shared: SyncAPI.Shared(), scope: .server)
  }

  package func spaces() async throws -> OwnSpaces {
    try await SyncAPI.explained { try await api.ownSpaces() }
  }

  package func create(_ request: SpaceRequest) async throws {
    try await SyncAPI.explained { _ = try await api.createSpace(request) }
  }

  package func accept(_ code: String) async throws -> Membership {
    try await SyncAPI.explained { try await api.accept(code: code) }
  }
}
