import FerryMissions
import FerryProtocol
import FerrySyncClient

extension Replica {
  /// Returns the bundles published by this replica's space. Their state is in `content.db` in the
  /// folder of the missions.
  ///
  /// Each later sync of the replica leaves withdrawn versions, and reports outcomes to the server.
  ///
  /// ```swift
  /// let bundles = try await replica.bundles()
  /// try await bundles.update("board")
  /// if let board = try await bundles.active("board") { print("version \(board.version)") }
  /// ```
  ///
  /// - Parameters:
  ///   - options: the version of the shell.
  ///   - missions: the manager for the files; by default a new one.
  public func bundles(
    options: BundleOptions = BundleOptions(), missions: MissionManager? = nil
  ) async throws -> Bundles {
    let manager: MissionManager
    if let missions { manager = missions } else { manager = try await missionManager() }
    let store = try await BundleStore.open(try missionRoot() + "/content.db")
    return bundles(in: store, options: options, missions: manager)
  }

  /// Returns the bundles with a state in a store; see ``bundles(options:missions:)``.
  package func bundles(
    in store: BundleStore, options: BundleOptions, missions: MissionManager
  ) -> Bundles {
    let bundles = Bundles(
      missions: missions, store: store, options: options,
      in: BundleSurroundings(
        device: { [self] () async throws(MissionError) in
          do { return try await deviceID() } catch { throw MissionError(.database, "\(error)") }
        }, report: { [self] in try await report($0) }))
    accompany(with: bundles)
    return bundles
  }
}

extension Bundles: ReplicaCompanion {
  // The manager of missions rests and ends with the replica by itself.
  package func suspend() async {}
  package func resume() async {}
  package func close() async {}
}

extension Bundles {
  /// Returns the version in use of a bundle, given by name; `nil` if there is none.
  public func active(_ name: String) async throws -> ActiveBundle? {
    try await active(try Self.checked(name))
  }

  /// Updates a bundle, given by name.
  @discardableResult
  public func update(_ name: String) async throws -> Bool {
    try await update(try Self.checked(name))
  }

  private static func checked(_ name: String) throws -> BundleName {
    guard let checked = BundleName(name) else {
      throw BundleError(.notFound, "“\(name.prefix(80))” is no bundle's name")
    }
    return checked
  }
}
