import FerryProtocol
import Foundation

/// Several spaces in one file.
extension Replica {
  /// Joins another space with this file, and returns the replica of that space. It does not need
  /// the network: the space's first sync makes the first contact.
  ///
  /// Each table of the file belongs to one space, that of the tracking replica. All else belongs to
  /// the file: a transaction may write to tables of several spaces, and records to all of them or
  /// to none. ``sync(progress:)`` and ``watch(progress:onEvent:)`` of this replica exchange all
  /// spaces.
  ///
  /// ```swift
  /// let family = try await replica.join("family")
  /// try await family.track("shopping")
  /// try await replica.sync()
  /// ```
  ///
  /// If the file has joined the space before, only the space's server and token change. The first
  /// space's replica keeps the others; call this on it.
  ///
  /// - Parameters:
  ///   - space: 1 to 63 characters of `A-Z a-z 0-9 . _ -`; at most 32 spaces in a file.
  ///   - url: the server; `nil` for the server of this replica.
  ///   - token: the source of the bearer token; `nil` for the tokens of this replica, if the server
  ///     is the same.
  ///   - certificateAuthorities: a PEM file of authorities trusted by the space besides the
  ///     system's; `nil` for those of this replica.
  /// - Throws: ``ReplicaError/cannotJoin(space:_:)``, ``ReplicaError/badAddress(_:)``,
  ///   ``ReplicaError/notConfigured`` if there is no server to use.
  @discardableResult
  public func join(
    _ space: String, server url: String? = nil, token: TokenSource? = nil,
    certificateAuthorities: String? = nil
  ) async throws -> Replica {
    try await typed {
      try checkIsFirst()
      // A space joined before keeps the same server.
      let own = try await thread.run { file in
        let number = try file.spaces.current().first { $0.space == space }?.number
        return try (number.map(file.spaces.file) ?? file).identity().server
      }
      guard let url = url ?? own?.url else { throw ReplicaError.notConfigured }
      let address = try ServerAddress(
        checking: url, space: space,
        certificateAuthorities: certificateAuthorities ?? own?.certificateAuthorities)
      let number = try await thread.run { file in
        let number = try file.spaces.join(address)
        let source = try token ?? file.token(for: address, in: number)
        try file.spaces.file(number).settings.prepare(address, source)
        try file.spaces.shareTables(with: number)
        return number
      }
      let replica = try await handle(number, token?.keeper(for: address))
      watches.wake()
      return replica
    }
  }

  /// Tracks tables with rows of several spaces of the file: a column has the name of each row's
  /// space. The tables are tracked in all spaces, also in those joined later.
  ///
  /// A row with another value in the column belongs to no space, and stays on this device. If a
  /// user changes the column, the row moves: the other devices of the former space see a delete.
  ///
  /// ```swift
  /// try await replica.track("tasks", spaceColumn: "list")
  /// try await replica.write { try $0.execute("UPDATE tasks SET list = 'family' WHERE id = ?", ["t1"]) }
  /// ```
  ///
  /// - Parameters:
  ///   - column: a column of each table, in this file; the key's is possible.
  ///   - direction: whether others' changes are applied here.
  ///   - identity: how the tables' keys become identifiers.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``; some spaces may track the tables then, and
  ///   the next call continues.
  public func track(
    _ tables: Name..., spaceColumn column: Name, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) async throws {
    try await track(tables, spaceColumn: column, direction: direction, identity: identity)
  }

  /// Tracks tables with rows of several spaces, with a list of their names.
  public func track(
    _ tables: [Name], spaceColumn column: Name, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) async throws {
    try await typed {
      try await thread.run {
        try $0.spaces.share(tables, by: column, direction: direction, identity: identity)
      }
    }
  }

  /// Leaves a joined space with this file: deletes the rows of the space's tables here, the history
  /// and the token. The space's other devices keep all rows.
  ///
  /// - Parameter discardingChanges: true to discard operations missing on the server, too.
  /// - Throws: ``ReplicaError/unsent(space:_:)`` if there are such operations;
  ///   ``ReplicaError/cannotLeave(_:)`` for the first space; ``ReplicaError/notFound(_:)``.
  public func leave(_ space: String, discardingChanges: Bool = false) async throws {
    try await typed {
      try checkIsFirst()
      let number = try await number(of: space)
      // Another process may sync the space now.
      let place = try await thread.run { try $0.spaces.file(number).place }
      let lock = try await engine.surroundings.lock(place, engine.options.lockPatience)
      defer { lock.release() }
      try await thread.run { try $0.spaces.leave(number, discarding: discardingChanges) }
      unlink(place + "-sync")
      joined.withLock { $0[number] = nil }
      watches.wake()
    }
  }

  /// Returns the names of the joined spaces, in the order of joining. The first space is not among
  /// them.
  public func joinedSpaces() async throws -> [String] {
    try await typed { try await thread.run { try $0.spaces.current().map(\.space) } }
  }

  /// Returns the replica of a space of this file.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the file has not joined it.
  public func space(_ name: String) async throws -> Replica {
    try await typed {
      let own = try await thread.run { try $0.identity().server?.space.value }
      if own == name { return self }
      try checkIsFirst()
      return try await handle(number(of: name))
    }
  }

  private func number(of space: String) async throws -> Int {
    try await thread.run { file in
      let found = try file.spaces.current().first { $0.space == space }
      if let found { return found.number }
      if try file.identity().server?.space.value == space { return 1 }
      throw ReplicaError.notFound(.space(space))
    }
  }

  private func checkIsFirst() throws {
    guard number == 1 else {
      throw ReplicaError.cannotLeave("call this on the replica that has opened the file")
    }
  }

  /// Returns the replicas of all joined spaces, in the order of joining.
  public func joinedReplicas() async throws -> [Replica] {
    guard number == 1 else { return [] }
    return try await typed {
      var replicas: [Replica] = []
      for (number, _) in try await thread.run({ try $0.spaces.current() }) {
        do {
          replicas.append(try await handle(number))
        } catch ReplicaError.notFound {
          continue
        }
      }
      return replicas
    }
  }

  /// Returns the replica of a joined space.
  ///
  /// - Parameter tokens: the space's own tokens; a replica with other ones is replaced.
  private func handle(_ number: Int, _ tokens: TokenKeeper? = nil) async throws -> Replica {
    if number == 1 { return self }
    if tokens == nil, let known = joined.withLock({ $0[number] }) { return known }
    let view = try await thread.thread(ofSpace: number, in: engine.surroundings)
    let (place, address, hasToken) = try await view.run { file in
      (file.place, try file.identity().server, try file.settings.hasToken())
    }
    let inherited = hasToken ? nil : address.flatMap { engine.tokens?.keeper(for: $0) }
    let replica = Replica(
      joined: number, of: self, thread: view, place: place, tokens: tokens ?? inherited)
    return joined.withLock { known in
      if tokens == nil, let other = known[number] { return other }
      known[number] = replica
      return replica
    }
  }
}

extension ReplicaFile {
  /// Returns the source of the token for a space without a token: the first space's token, if it is
  /// for the same server.
  fileprivate func token(for address: ServerAddress, in number: Int) throws -> TokenSource {
    let joined = try spaces.file(number)
    guard try !joined.settings.hasToken(), try identity().server?.url == address.url,
      try settings.hasToken(),
      let token = try credentials.credential(of: place)?.token
    else { return .stored }
    return .fixed(token)
  }
}
