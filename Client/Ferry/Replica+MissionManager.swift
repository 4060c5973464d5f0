import FerryCaching
import FerryMissions
import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerrySyncClient

extension Replica {
  /// Returns a manager of the missions published by this replica's space. The files are in the
  /// folder `<replica>.missions` beside the replica's file; those of a joined space in
  /// `<replica>-<number>.missions`.
  ///
  /// Work under way at the end of the last process continues. If `restores` is `false`, it waits
  /// for ``MissionManager/restore()``. The catalogue is from the last ``sync(progress:)``.
  ///
  /// The manager is suspended and closed with the replica. Of a replica in memory, the files are in
  /// a temporary folder; ``close()`` deletes it.
  ///
  /// ```swift
  /// let missions = try await replica.missionManager()
  /// try await missions.download("handbook")
  /// try await missions.waitUntilIdle("handbook")
  /// print(try await missions.path("handbook"))
  /// ```
  ///
  /// - Parameters:
  ///   - options: the limits of the downloads; see ``MissionOptions``.
  ///   - key: 32 bytes; they encrypt content at rest; ``MissionManager/content(of:in:)`` reads such
  ///     content. It is for Ferry's files alone; ``MissionParts/files`` have their own.
  ///   - transport: carries requests, with separate bandwidth limits; libcurl by default.
  ///   - restores: true to continue the work of an earlier process at once.
  ///   - parts: replace parts of the manager; see ``MissionParts``.
  public func missionManager(
    options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    transport: any Transport = SystemTransport(), restores: Bool = true,
    parts: MissionParts = MissionParts()
  ) async throws(MissionError) -> MissionManager {
    let root = try missionRoot()
    let files = try parts.files(in: root, key: key)
    let store = try await parts.store(in: root)
    let open = MissionRequests(replica: self, transport: transport, options: options).opening
    let manager = try await MissionManager.open(
      store: store, files: files,
      downloader: parts.downloader?(open) ?? MissionRequests.downloader(open),
      catalogue: parts.catalogue ?? ReplicaCatalogue(replica: self), options: options)
    accompany(with: manager)
    if restores { try await manager.restore() }
    return manager
  }

  /// Returns the folder of the missions.
  func missionRoot() throws(MissionError) -> String {
    do { return try missionFolder() } catch {
      throw MissionError(.files, "a temporary folder cannot be created: \(error)")
    }
  }
}

extension MissionManager: ReplicaCompanion {}

/// The requests for missions' content to the replica's current server.
private struct MissionRequests: Sendable {
  let replica: Replica
  let transport: any Transport
  let options: MissionOptions

  static func downloader(_ open: @escaping DownloadOpening) -> any Downloader {
    var settings = DownloadSettings()
    // The manager writes all content to the disk before it reports a mission as complete.
    settings.endsDurable = false
    // The manager itself retries without end, and reports the reason. So a request goes back to it
    // after two failures in a row.
    settings.retry.attemptsMax = 2
    // If a server asks for a longer pause, the manager reports it and pauses before it asks again.
    settings.retry.retryAfterMax = .seconds(10)
    return ChunkedDownloader(settings: settings, open: open)
  }

  /// Returns the function for requests to the replica's current server, with the token.
  var opening: DownloadOpening {
    { [self] (source, fields) async throws(TransportError) -> TransportStream in
      let server: ServerAccess
      let token: String?
      do {
        server = try await replica.access()
        token = try await server.token()
      } catch {
        throw TransportError(.other, String(describing: error))
      }
      let address = server.address
      let url = address.url.ends(with: "/") ? String(address.url.dropLast()) : address.url
      var base = BaseURL(url)
      if let token { base.headers["Authorization"] = "Bearer \(token)" }
      // A client is a small value around the transport, and the transport keeps the connections.
      var configuration = NetworkConfiguration(base)
      configuration.certificateAuthorities = address.certificateAuthorities
      let client = NetworkClient(configuration, transport: transport)
      return try await ChunkedDownloader.requests(
        through: client, timeout: options.silence,
        allowsPrivateAddresses: options.allowsPrivateAddresses)(source, fields)
    }
  }
}

/// The catalogue of missions in a replica.
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
  /// Downloads missions by their names.
  ///
  /// - Throws: ``MissionError/Kind/notFound`` if a name is not a valid mission name, and the errors
  ///   of ``download(_:)-swift.method``.
  public func download(_ names: String...) async throws(MissionError) {
    try await download(try Self.identifiers(names))
  }

  /// Waits until missions, given by their names, are idle.
  @discardableResult
  public func waitUntilIdle(_ names: String...) async throws(MissionError) -> [MissionStatus] {
    try await waitUntilIdle(try Self.identifiers(names))
  }

  /// Returns the folder of a mission, given by name.
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
