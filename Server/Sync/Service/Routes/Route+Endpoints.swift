extension Route {
  private static let table = Dictionary(
    uniqueKeysWithValues: allCases.map { ($0, $0.declared) })

  /// The methods of the route, each with its rules and its handler.
  package var endpoints: [Endpoint] { Self.table[self] ?? [] }

  private typealias Service = SyncService

  /// The table of the server's endpoints. `Protocol/openapi.yaml` describes the same.
  private var declared: [Endpoint] {
    switch self {
    // The server.
    case .health: Endpoint.reading(nil, isServedOnReserve: true, .open(Service.health))
    case .readiness: Endpoint.reading(nil, isServedOnReserve: true, .open(Service.readiness))
    case .metrics: Endpoint.reading(nil, isServedOnReserve: true, .open(Service.metricsPage))
    case .console: Endpoint.reading(nil, .open(Service.console))
    case .blob: Endpoint.reading(.reader, .open(Service.blob))
    case .spaces: Endpoint.reading(.admin, memory: .list, .administrator(Service.spaces))
    case .tokens:
      Endpoint.reading(.admin, memory: .page, .administrator(Service.tokens)) + [
        Endpoint("POST", .admin, content: .tokenRequest, .administrator(Service.createToken))
      ]
    case .token: [Endpoint("DELETE", .admin, .administrator(Service.revokeToken))]
    case .tokenRotation:
      [Endpoint("POST", .admin, content: .tokenRequest, .administrator(Service.rotateToken))]
    case .audit: Endpoint.reading(.admin, memory: .page, .administrator(Service.audit))

    // The records of a space.
    case .space:
      Endpoint.reading(.reader, .member(Service.spaceInfo)) + [
        Endpoint("PUT", .admin, .member(Service.createSpace))
      ]
    case .packets: [Endpoint("POST", .writer, content: .message, .member(Service.receivePacket))]
    case .changes: Endpoint.reading(.reader, memory: .page, .member(Service.changes))
    case .records:
      [Endpoint("POST", .reader, content: .message, memory: .page, .space(Service.records))]
        + Endpoint.reading(.admin, memory: .page, .space(Service.listRecords))
    case .events: [Endpoint("GET", .reader, .member(Service.events))]
    case .schema:
      Endpoint.reading(.reader, memory: .list, .space(Service.schema)) + [
        Endpoint("POST", .admin, content: .message, .space(Service.checkSchema)),
        Endpoint("PUT", .admin, content: .message, .space(Service.applySchema)),
      ]
    case .digests:
      [Endpoint("POST", .reader, content: .message, memory: .page, .space(Service.digests))]
    case .devices:
      [Endpoint("POST", .reader, content: .message, memory: .list, .space(Service.deviceNames))]
        + Endpoint.reading(.admin, memory: .list, .space(Service.listDevices))
    case .device: [Endpoint("PUT", .writer, content: .message, .member(Service.nameDevice))]

    // Missions and bundles.
    case .missions: Endpoint.reading(.reader, memory: .page, .space(Service.missions))
    case .mission:
      Endpoint.reading(.reader, memory: .list, .space(Service.mission)) + [
        Endpoint("PUT", .admin, content: .message, .space(Service.publishMission)),
        Endpoint("DELETE", .admin, .space(Service.retractMission)),
      ]
    case .bundles: Endpoint.reading(.reader, memory: .page, .space(Service.bundles))
    case .bundle:
      Endpoint.reading(.admin, memory: .page, .space(Service.bundle)) + [
        Endpoint("POST", .admin, content: .message, .space(Service.changeBundle))
      ]
    case .bundleReports:
      [Endpoint("POST", .reader, content: .message, .member(Service.addBundleReports))]
    case .upload:
      [
        Endpoint("HEAD", .admin, .space(Service.uploadState)),
        Endpoint("PUT", .admin, content: .message, .member(Service.receiveUpload)),
      ]

    // The views of administrators.
    case .overview: Endpoint.reading(.admin, memory: .list, .space(Service.overview))
    case .tables: Endpoint.reading(.admin, memory: .list, .space(Service.tables))
    case .history: Endpoint.reading(.admin, memory: .page, .space(Service.history))
    case .conflicts: Endpoint.reading(.admin, memory: .page, .space(Service.conflicts))
    case .rejections: Endpoint.reading(.admin, memory: .list, .space(Service.rejections))
    case .activity: Endpoint.reading(.admin, memory: .list, .space(Service.activity))
    case .unknown: []
    }
  }
}
