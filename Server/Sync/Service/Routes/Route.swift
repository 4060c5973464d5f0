import FerryProtocol

/// The kind of a request, by path; also the `route` of log lines and metrics.
package enum Route: String, Sendable, CaseIterable {
  case spaces = "/v1/spaces"
  case space = "/v1/spaces/{space}"
  case overview = "/v1/spaces/{space}/overview"
  case tables = "/v1/spaces/{space}/tables"
  case history = "/v1/spaces/{space}/history"
  case conflicts = "/v1/spaces/{space}/conflicts"
  case rejections = "/v1/spaces/{space}/rejections"
  case activity = "/v1/spaces/{space}/activity"
  case packets = "/v1/spaces/{space}/packets"
  case changes = "/v1/spaces/{space}/changes"
  case records = "/v1/spaces/{space}/records"
  case events = "/v1/spaces/{space}/events"
  case schema = "/v1/spaces/{space}/schema"
  case digests = "/v1/spaces/{space}/digests"
  case devices = "/v1/spaces/{space}/devices"
  case device = "/v1/spaces/{space}/devices/{device}"
  case missions = "/v1/spaces/{space}/missions"
  case mission = "/v1/spaces/{space}/missions/{mission}"
  case bundles = "/v1/spaces/{space}/bundles"
  case bundle = "/v1/spaces/{space}/bundles/{bundle}"
  case bundleReports = "/v1/spaces/{space}/bundle-reports"
  case upload = "/v1/spaces/{space}/blobs/{sha256}"
  case blob = "/v1/blobs/{sha256}"
  case tokens = "/v1/tokens"
  case token = "/v1/tokens/{id}"
  case tokenRotation = "/v1/tokens/{id}/rotation"
  case audit = "/v1/audit"
  case console = "/console/{file}"
  case health = "/healthz"
  case readiness = "/readyz"
  case metrics = "/metrics"
  /// Nothing is there.
  case unknown = "unknown"

  /// The value of an `Allow` header (RFC 9110 §10.2.1).
  package var allow: String { endpoints.map(\.method).joined(separator: ", ") }
}

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
