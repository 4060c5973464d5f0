import FerryPersistence
import FerryProtocol
import Foundation

/// The spaces of a replica's file. Get them with ``Replica/spaces``.
///
/// The file's first space is that of the opened replica. The others are joined: each has a replica of its own
/// on the same file.
public struct Spaces: Sendable {
  /// The replica of the file's first space, or the one of a joined space alone.
  let replica: Replica
  private var thread: ReplicaThread { replica.thread }
  private var engine: SyncEngine { replica.engine }

  /// Joins another space with this file, and returns the replica of that space. It does not need
  /// the network: the space's first sync makes the first contact.
  ///
  /// Each table of the file belongs to one space, that of the tracking replica. All else belongs to
  /// the file: a transaction may write to tables of several spaces, and records to all of them or
  /// to none. ``Replica/sync(progress:)`` and ``Replica/watch(progress:onEvent:)`` of this replica exchange all
  /// spaces.
  ///
  /// ```swift
  /// let family = try await replica.spaces.join("family")
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
    try await ReplicaError.converting {
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
      let joined = try await handle(number, token?.keeper(for: address))
      replica.watches.wake()
      return joined
    }
  }

  /// Leaves a joined space with this file: deletes the rows of the space's tables here, the history
  /// and the token. The space's other devices keep all rows.
  ///
  /// - Parameters:
  ///   - discardingChanges: true to discard operations missing on the server, too.
  ///   - endingMembership: true to end the user's membership on the server, before. It needs the network.
  /// - Throws: ``ReplicaError/unsent(space:_:)`` if there are such operations;
  ///   ``ReplicaError/cannotLeave(_:)`` for the first space; ``ReplicaError/notFound(_:)``.
  public func leave(
    _ space: String, discardingChanges: Bool = false, endingMembership: Bool = false
  ) async throws {
    try await ReplicaError.converting {
      try checkIsFirst()
      let number = try await number(of: space)
      if endingMembership {
        // What would fail afterwards fails before.
        try await thread.run { try $0.spaces.checkLeaving(number, discarding: discardingChanges) }
        try await replica(of: space).members.endOwn()
      }
      // Another process may sync the space now.
      let place = try await thread.run { try $0.spaces.file(number).place }
      let lock = try await engine.surroundings.lock(place, engine.options.lockPatience)
      defer { lock.release() }
      try await thread.run { try $0.spaces.leave(number, discarding: discardingChanges) }
      unlink(place + "-sync")
      replica.joined.withLock { $0[number] = nil }
      replica.watches.wake()
    }
  }

  /// Returns the names of the joined spaces, in the order of joining. The first space is not among
  /// them.
  public func joined() async throws -> [String] {
    try await thread.call { try $0.spaces.current().map(\.space) }
  }

  /// Returns the replica of a space of this file.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the file has not joined it.
  public func replica(of name: String) async throws -> Replica {
    try await ReplicaError.converting {
      let own = try await thread.run { try $0.identity().server?.space.value }
      if own == name { return replica }
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

  func checkIsFirst() throws {
    guard replica.number == 1 else {
      throw ReplicaError.cannotLeave("call this on the replica that has opened the file")
    }
  }

  /// Returns the replicas of all joined spaces, in the order of joining.
  public func replicas() async throws -> [Replica] {
    guard replica.number == 1 else { return [] }
    return try await ReplicaError.converting {
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
    if number == 1 { return replica }
    if tokens == nil, let known = replica.joined.withLock({ $0[number] }) { return known }
    let view = try await thread.thread(ofSpace: number, in: engine.surroundings)
    let (place, address, hasToken) = try await view.run { file in
      (file.place, try file.identity().server, try file.settings.hasToken())
    }
    let inherited = hasToken ? nil : address.flatMap { engine.tokens?.keeper(for: $0) }
    let joined = Replica(
      joined: number, of: replica, thread: view, place: place, tokens: tokens ?? inherited)
    return replica.joined.withLock { known in
      if tokens == nil, let other = known[number] { return other }
      known[number] = joined
      return joined
    }
  }

  // MARK: Exchanging

  /// Syncs all spaces of the file side by side, and returns the result of each: the first space,
  /// then the joined ones. A failed space does not stop the others.
  ///
  /// ```swift
  /// for space in try await replica.spaces.sync() {
  ///   if case .failure(let error) = space.result { print("\(space.space ?? ""): \(error)") }
  /// }
  /// ```
  ///
  /// - Throws: ``ReplicaError/cancelled``, ``ReplicaError/suspended``, ``ReplicaError/closed``.
  public func sync(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await thread.exchange { [replica] in
      try await SpaceExchange(replica: replica).each {
        try await $0.engine.sync(progress: $0.noting(progress))
      }
    }
    await replica.notifyCompanions()
    return results
  }

  /// Pushes to all spaces of the file, and returns the result of each, as ``sync(progress:)`` does.
  public func push(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    try await thread.exchange { [replica] in
      try await SpaceExchange(replica: replica).each {
        try await $0.engine.push(progress: $0.noting(progress))
      }
    }
  }

  /// Pulls from all spaces of the file, and returns the result of each, as ``sync(progress:)`` does.
  public func pull(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await thread.exchange { [replica] in
      try await SpaceExchange(replica: replica).each {
        try await $0.engine.pull(progress: $0.noting(progress))
      }
    }
    await replica.notifyCompanions()
    return results
  }

  /// Watches as ``Replica/watch(progress:onEvent:)`` does, and names the space of each event.
  ///
  /// - Parameter onEvent: gets the space's name, `nil` if it has none, and the event.
  public func watch(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (_ space: String?, _ event: Replica.WatchEvent) -> Void
  ) async throws {
    try await ReplicaError.converting {
      while true {
        do {
          return try await thread.gate.whileOpen { [replica] in
            try await SpaceWatch(first: replica).run(progress: progress, onEvent: onEvent)
          }
        } catch StoppedWork.suspended {
          try await thread.gate.opened()
        }
      }
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
