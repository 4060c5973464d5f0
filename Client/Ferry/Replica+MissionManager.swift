import Caching
import FerryProtocol
import Missions
import Networking
import SyncClient

extension Replica {
  /// A manager of the missions that this replica's space publishes. What it keeps lies in the
  /// folder `<replica>.missions` beside the replica's file.
  ///
  /// What was under way when the last process ended goes on, unless `restores` is `false`; then
  /// ``MissionManager/restore()`` lets it. The catalogue is what ``sync(progress:)`` has brought.
  ///
  /// ```swift
  /// let missions = try await replica.missionManager()
  /// try await missions.download("handbook")
  /// try await missions.settled("handbook")
  /// print(try await missions.path("handbook"))
  /// ```
  ///
  /// - Parameters:
  ///   - key: 32 bytes; with them content is encrypted at rest, and read with
  ///     ``MissionManager/content(of:in:)``.
  ///   - transport: what carries requests; libcurl unless given. Limits of bandwidth are its own.
  public func missionManager(
    options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    transport: any Transport = CurlTransport(), restores: Bool = true
  ) async throws(MissionError) -> MissionManager {
    let root = path + ".missions"
    let files = try DiskFileStore(root: root, key: key)
    let store = try await SQLiteMissionStore.open(
      root + "/missions.db", canonical: ContentAddress.canonical)
    var settings = DownloadSettings()
    // The manager has all content written to the disk before it says that a mission is complete.
    settings.endsDurable = false
    // The manager tries again for ever, and tells why nothing comes: what fails twice in a row is
    // for it.
    settings.retry.attemptsMax = 2
    // A server that wants a longer pause is told of, and asked again by the manager's pauses.
    settings.retry.retryAfterMax = .seconds(10)
    let manager = try await MissionManager.open(
      store: store, files: files,
      downloader: ChunkedDownloader(
        settings: settings, open: requests(over: transport, silence: options.silence)),
      catalogue: ReplicaCatalogue(replica: self), options: options)
    if restores { try await manager.restore() }
    return manager
  }

  /// Requests to the server that the replica has at that moment, with its token.
  private func requests(
    over transport: any Transport, silence: Duration
  ) -> DownloadOpening {
    { [self] (source, fields) async throws(TransportError) -> TransportStream in
      let access: ServerAccess?
      do { access = try await self.access() } catch {
        throw TransportError(.other, String(describing: error))
      }
      guard let server = access else {
        throw TransportError(.badAddress, "this replica has no server yet")
      }
      let address = server.address
      let url = address.url.hasSuffix("/") ? String(address.url.dropLast()) : address.url
      var base = BaseURL(url)
      if let token = server.token { base.headers["Authorization"] = "Bearer \(token)" }
      // A client is a few words around the transport, which keeps the connections.
      var configuration = NetworkConfiguration(base)
      configuration.certificateAuthorities = address.certificateAuthorities
      let client = NetworkClient(configuration, transport: transport)
      return try await ChunkedDownloader.requests(through: client, timeout: silence)(
        source, fields)
    }
  }
}

/// The catalogue that a replica has.
private struct ReplicaCatalogue: MissionCatalogue {
  let replica: Replica

  func space() async throws(MissionError) -> SpaceName {
    guard let server = try await translated({ try await replica.server() }) else {
      throw MissionError(.notFound, "this replica has no server yet")
    }
    return server.space
  }

  func missions() async throws(MissionError) -> [MissionRecord] {
    try await translated { try await replica.missions() }
  }

  private func translated<T>(_ body: () async throws -> T) async throws(MissionError) -> T {
    do { return try await body() } catch { throw MissionError(.database, "\(error)") }
  }
}

extension MissionManager {
  /// The same by names, which are checked.
  ///
  /// - Throws: ``MissionError/Kind/notFound`` for what is no mission's name, and what
  ///   ``download(_:)-swift.method`` throws.
  public func download(_ names: String...) async throws(MissionError) {
    try await download(try Self.identifiers(names))
  }

  /// The same by names.
  @discardableResult
  public func settled(_ names: String...) async throws(MissionError) -> [MissionStatus] {
    try await settled(try Self.identifiers(names))
  }

  /// The same by name.
  public func path(_ name: String) async throws(MissionError) -> String {
    try await path(try Self.identifiers([name])[0])
  }

  private static func identifiers(_ names: [String]) throws(MissionError) -> [MissionID] {
    var ids: [MissionID] = []
    for name in names {
      guard let id = MissionID(name) else {
        throw MissionError(.notFound, "“\(name)” is no mission's name")
      }
      ids.append(id)
    }
    return ids
  }
}
