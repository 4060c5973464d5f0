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
  case feed = "/v1/spaces/{space}/feed"
  case packets = "/v1/spaces/{space}/packets"
  case changes = "/v1/spaces/{space}/changes"
  case records = "/v1/spaces/{space}/records"
  case events = "/v1/spaces/{space}/events"
  case schema = "/v1/spaces/{space}/schema"
  case digests = "/v1/spaces/{space}/digests"
  case devices = "/v1/spaces/{space}/devices"
  case device = "/v1/spaces/{space}/devices/{device}"
  case members = "/v1/spaces/{space}/members"
  case membership = "/v1/spaces/{space}/membership"
  case invitations = "/v1/spaces/{space}/invitations"
  case invitation = "/v1/spaces/{space}/invitations/{id}"
  case missions = "/v1/spaces/{space}/missions"
  case mission = "/v1/spaces/{space}/missions/{mission}"
  case bundles = "/v1/spaces/{space}/bundles"
  case bundle = "/v1/spaces/{space}/bundles/{bundle}"
  case bundleReports = "/v1/spaces/{space}/bundle-reports"
  case upload = "/v1/spaces/{space}/blobs/{sha256}"
  case blob = "/v1/blobs/{sha256}"
  case user = "/v1/user"
  case acceptance = "/v1/invitations"
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

  /// The table of the server's endpoints. `Protocol/openapi.yaml` describes the same.
  private var declared: [Endpoint] {
    switch self {
    // The server.
    case .health: Endpoint.reading(nil, isServedOnReserve: true, .open { $0.status.health })
    case .readiness: Endpoint.reading(nil, isServedOnReserve: true, .open { $0.status.readiness })
    case .metrics: Endpoint.reading(nil, isServedOnReserve: true, .open { $0.status.metrics })
    case .console: Endpoint.reading(nil, .open { $0.console.file })
    case .blob: Endpoint.reading(.reader, .open { $0.content.download })
    case .spaces:
      Endpoint.reading(.admin, memory: .list, .administrator { $0.spaceViews.spaces }) + [
        Endpoint("POST", nil, content: .tokenRequest, .user { $0.members.createSpace })
      ]
    case .user: Endpoint.reading(nil, memory: .list, .user { $0.members.ownSpaces })
    case .acceptance:
      [Endpoint("POST", nil, content: .tokenRequest, .user { $0.members.accept })]
    case .tokens:
      Endpoint.reading(.admin, memory: .page, .administrator { $0.tokens.list }) + [
        Endpoint("POST", .admin, content: .tokenRequest, .administrator { $0.tokens.create })
      ]
    case .token: [Endpoint("DELETE", .admin, .administrator { $0.tokens.revoke })]
    case .tokenRotation:
      [Endpoint("POST", .admin, content: .tokenRequest, .administrator { $0.tokens.rotate })]
    case .audit: Endpoint.reading(.admin, memory: .page, .administrator { $0.audit.list })

    // The records of a space.
    case .space:
      Endpoint.reading(.reader, .member { $0.spaces.show }) + [
        Endpoint("PUT", .admin, .member { $0.spaces.create })
      ]
    case .packets: [Endpoint("POST", .writer, content: .message, .member { $0.packets.receive })]
    case .changes: Endpoint.reading(.reader, memory: .page, .member { $0.changes.list })
    case .records:
      [Endpoint("POST", .reader, content: .message, memory: .page, .space { $0.changes.records })]
        + Endpoint.reading(.admin, memory: .page, .space { $0.recordViews.records })
    case .events: [Endpoint("GET", .reader, .member { $0.events.listen })]
    case .schema:
      Endpoint.reading(.reader, memory: .list, .space { $0.schema.show }) + [
        Endpoint("POST", .admin, content: .message, .space { $0.schema.check }),
        Endpoint("PUT", .admin, content: .message, .space { $0.schema.apply }),
      ]
    case .digests:
      [Endpoint("POST", .reader, content: .message, memory: .page, .space { $0.changes.digests })]
    case .devices:
      [Endpoint("POST", .reader, content: .message, memory: .list, .space { $0.deviceNames.list })]
        + Endpoint.reading(.admin, memory: .list, .space { $0.spaceViews.devices })
    case .device: [Endpoint("PUT", .writer, content: .message, .member { $0.deviceNames.setName })]

    // Members and invitations.
    case .members:
      Endpoint.reading(.reader, memory: .page, .space { $0.members.members }) + [
        Endpoint("PUT", .admin, content: .tokenRequest, .member { $0.members.setRole })
      ]
    case .membership: [Endpoint("DELETE", nil, .user { $0.members.leave })]
    case .invitations:
      Endpoint.reading(.admin, memory: .list, .space { $0.members.invitations }) + [
        Endpoint("POST", .admin, content: .tokenRequest, .member { $0.members.invite })
      ]
    case .invitation: [Endpoint("DELETE", .admin, .member { $0.members.revokeInvitation })]

    // Missions and bundles.
    case .missions: Endpoint.reading(.reader, memory: .page, .space { $0.missions.list })
    case .mission:
      Endpoint.reading(.reader, memory: .list, .space { $0.missions.show }) + [
        Endpoint("PUT", .admin, content: .message, .space { $0.missions.publish }),
        Endpoint("DELETE", .admin, .space { $0.missions.retract }),
      ]
    case .bundles: Endpoint.reading(.reader, memory: .page, .space { $0.bundles.list })
    case .bundle:
      Endpoint.reading(.admin, memory: .page, .space { $0.bundles.show }) + [
        Endpoint("POST", .admin, content: .message, .space { $0.bundles.change })
      ]
    case .bundleReports:
      [Endpoint("POST", .reader, content: .message, .member { $0.bundles.addReports })]
    case .upload:
      [
        Endpoint("HEAD", .admin, .space { $0.content.state }),
        Endpoint("PUT", .admin, content: .message, .member { $0.content.upload }),
      ]

    // The views of administrators.
    case .overview: Endpoint.reading(.admin, memory: .list, .space { $0.spaceViews.overview })
    case .tables: Endpoint.reading(.admin, memory: .list, .space { $0.recordViews.tables })
    case .history: Endpoint.reading(.admin, memory: .page, .space { $0.recordViews.history })
    case .conflicts: Endpoint.reading(.admin, memory: .page, .space { $0.recordViews.conflicts })
    case .rejections: Endpoint.reading(.admin, memory: .list, .space { $0.spaceViews.rejections })
    case .activity: Endpoint.reading(.admin, memory: .list, .space { $0.spaceViews.activity })
    case .feed: Endpoint.reading(.admin, memory: .page, .space { $0.feed.list })
    case .unknown: []
    }
  }
}
