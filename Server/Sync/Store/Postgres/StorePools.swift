import FerryPostgres

/// The connections of a store to the main server.
struct StorePools {
  let main: PostgresPool
  /// For work in a separate session; the main pool, unless there is a direct address.
  let sessions: PostgresPool

  /// - Throws: ``StoreError/failed(_:)`` if the direct address is of another database.
  init(_ addresses: PostgresAddresses, _ connections: Int, isDistributed: Bool) async throws {
    let settings = PostgresStoreSchema.settings(isDistributed: isDistributed)
    main = try PostgresPool(
      url: addresses.main, connections: connections, settings: settings,
      options: Self.options(connections, addresses.sharing))
    guard let direct = addresses.direct else {
      sessions = main
      return
    }
    var options = Self.options(1, .session)
    options.shares = .none
    sessions = try PostgresPool(url: direct, connections: 1, settings: settings, options: options)
    guard try await sessions.run(Self.identity) == main.run(Self.identity) else {
      await close()
      throw StoreError.failed(
        "--listen-url and --database are different databases; they must be two addresses of one")
    }
  }

  func close() async {
    if sessions !== main { await sessions.close() }
    await main.close()
  }

  /// Returns a pool's options. A statement has a timeout, so a longer silence means a hanging
  /// server.
  static func options(_ connections: Int, _ sharing: PostgresSharing) -> PostgresPool.Options {
    var options = PostgresPool.Options()
    options.sharing = sharing
    options.shares = .standard(connections: connections)
    options.answerLimit = .seconds(60)
    options.feelsPulse = true
    options.needsWrites = true
    return options
  }

  /// Returns the options of a pool that only checks the server.
  static func checkOptions(_ sharing: PostgresSharing, limit: Duration) -> PostgresPool.Options {
    var options = PostgresPool.Options()
    options.sharing = sharing
    options.shares.patience = limit
    options.shares.waitingMax = 256
    options.answerLimit = limit
    options.needsWrites = true
    return options
  }

  /// Returns values unique to each database.
  private static func identity(_ connection: PostgresConnection) throws -> [String] {
    let row = try connection.query(
      .once(
        """
        SELECT pg_postmaster_start_time()::text, oid::text FROM pg_database
        WHERE datname = current_database()
        """))[0]
    return [try row.text(0), try row.text(1)]
  }
}
