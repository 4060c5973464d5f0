import FerryProtocol

/// The kind of a request, by its path; also the `route` of log lines and metrics.
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

  /// The methods it takes, and the role that each needs; `nil` if every caller may use it.
  package var methods: [(name: String, need: Role?)] {
    switch self {
    case .space: [("GET", .reader), ("HEAD", .reader), ("PUT", .admin)]
    case .packets: [("POST", .writer)]
    case .changes: [("GET", .reader), ("HEAD", .reader)]
    case .records, .devices: [("POST", .reader), ("GET", .admin), ("HEAD", .admin)]
    case .events: [("GET", .reader)]
    case .schema: [("GET", .reader), ("HEAD", .reader), ("POST", .admin), ("PUT", .admin)]
    case .digests, .bundleReports: [("POST", .reader)]
    case .spaces, .overview, .tables, .history, .conflicts, .rejections, .activity:
      [("GET", .admin), ("HEAD", .admin)]
    case .device: [("PUT", .writer)]
    case .missions, .bundles, .blob: [("GET", .reader), ("HEAD", .reader)]
    case .bundle: [("GET", .admin), ("HEAD", .admin), ("POST", .admin)]
    case .mission:
      [("GET", .reader), ("HEAD", .reader), ("PUT", .admin), ("DELETE", .admin)]
    case .tokens: [("GET", .admin), ("HEAD", .admin), ("POST", .admin)]
    case .token: [("DELETE", .admin)]
    case .tokenRotation: [("POST", .admin)]
    case .audit: [("GET", .admin), ("HEAD", .admin)]
    case .upload: [("HEAD", .admin), ("PUT", .admin)]
    case .health, .readiness, .metrics, .console: [("GET", nil), ("HEAD", nil)]
    case .unknown: []
    }
  }

  /// Returns whether a request by this method has content.
  package func takesContent(_ method: String) -> Bool {
    switch (self, method) {
    case (.packets, "POST"), (.records, "POST"), (.digests, "POST"), (.schema, "PUT"),
      (.schema, "POST"), (.devices, "POST"), (.device, "PUT"), (.mission, "PUT"), (.upload, "PUT"),
      (.bundle, "POST"), (.bundleReports, "POST"),
      (.tokens, "POST"), (.tokenRotation, "POST"):
      true
    default: false
    }
  }

  /// Returns the memory that an answer takes while it is built.
  func answerSize(_ method: String) -> AnswerSize {
    switch self {
    case .changes, .records, .history, .conflicts, .digests, .missions, .bundles, .bundle,
      .tokens, .audit:
      method == "POST" && (self == .tokens || self == .bundle) ? .small : .page
    case .spaces, .overview, .tables, .rejections, .activity, .devices: .list
    case .schema, .mission: method == "GET" || method == "HEAD" ? .list : .small
    case .space, .packets, .events, .device, .bundleReports, .upload, .blob, .token,
      .tokenRotation, .console, .health, .readiness, .metrics, .unknown:
      .small
    }
  }

  /// The value of an `Allow` header (RFC 9110 §10.2.1).
  package var allow: String { methods.map(\.name).joined(separator: ", ") }
}

/// The route of a method and a path; pure.
package struct RouteMatch: Sendable, Equatable {
  package var route: Route
  /// The part of the path that names the space, unchanged.
  package var spaceText: String?
  /// The part that names one thing in the space, or content, unchanged.
  package var itemText: String?
  /// Whether the route takes the method.
  package var isAllowed = true
  /// The role that is needed, `nil` if every caller may use it.
  package var need: Role?

  /// Matches the decoded segments of a path.
  /// - Parameter path: The path as it was sent. Ferry takes its own names only without
  ///   percent-encoding: `/%6Detrics` is unknown, so that a proxy which bars `/metrics` bars it.
  package init(method: String, segments: [String], path: String? = nil) {
    (route, spaceText) = Self.hidesName(segments, path) ? (.unknown, nil) : Self.find(segments)
    if [.device, .mission, .bundle, .upload, .blob, .token].contains(route) {
      itemText = segments.last
    }
    if route == .console, segments.count == 2 { itemText = segments[1] }
    if route == .tokenRotation { itemText = segments[2] }
    guard route != .unknown else { return }
    guard let entry = route.methods.first(where: { $0.name == method }) else {
      isAllowed = false
      return
    }
    need = entry.need
  }

  /// Returns whether a part that is the same in all addresses of a route is written by other
  /// characters.
  private static func hidesName(_ segments: [String], _ path: String?) -> Bool {
    guard let path, path.utf8.contains(UInt8(ascii: "%")) else { return false }
    let raw = path.utf8.dropFirst()
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard raw.count == segments.count else { return true }
    return [0, 1, 3].contains { index in
      index < raw.count && !raw[index].elementsEqual(segments[index].utf8)
    }
  }

  private static func find(_ segments: [String]) -> (Route, String?) {
    switch segments.count {
    case 1:
      switch segments[0] {
      case "healthz": return (.health, nil)
      case "readyz": return (.readiness, nil)
      case "metrics": return (.metrics, nil)
      case "console": return (.console, nil)
      default: return (.unknown, nil)
      }
    case 3 where segments.starts(with: ["v1", "spaces"]) && !segments[2].isEmpty:
      return (.space, segments[2])
    case 4 where segments.starts(with: ["v1", "spaces"]) && !segments[2].isEmpty:
      switch segments[3] {
      case "packets": return (.packets, segments[2])
      case "changes": return (.changes, segments[2])
      case "records": return (.records, segments[2])
      case "events": return (.events, segments[2])
      case "schema": return (.schema, segments[2])
      case "digests": return (.digests, segments[2])
      case "devices": return (.devices, segments[2])
      case "missions": return (.missions, segments[2])
      case "bundles": return (.bundles, segments[2])
      case "bundle-reports": return (.bundleReports, segments[2])
      default: return (inspection(segments[3]), segments[2])
      }
    case 2 where segments[0] == "console": return (.console, nil)
    case 2 where segments == ["v1", "spaces"]: return (.spaces, nil)
    case 2 where segments == ["v1", "tokens"]: return (.tokens, nil)
    case 2 where segments == ["v1", "audit"]: return (.audit, nil)
    case 3 where segments.starts(with: ["v1", "tokens"]) && !segments[2].isEmpty:
      return (.token, nil)
    case 4
    where segments.starts(with: ["v1", "tokens"]) && !segments[2].isEmpty
      && segments[3] == "rotation":
      return (.tokenRotation, nil)
    case 3 where segments.starts(with: ["v1", "blobs"]) && !segments[2].isEmpty:
      return (.blob, nil)
    case 5
    where segments.starts(with: ["v1", "spaces"]) && !segments[2].isEmpty && !segments[4].isEmpty:
      switch segments[3] {
      case "devices": return (.device, segments[2])
      case "missions": return (.mission, segments[2])
      case "bundles": return (.bundle, segments[2])
      case "blobs": return (.upload, segments[2])
      default: return (.unknown, nil)
      }
    default: return (.unknown, nil)
    }
  }

  /// Returns the route of a view of a space for administrators.
  private static func inspection(_ segment: String) -> Route {
    switch segment {
    case "overview": .overview
    case "tables": .tables
    case "history": .history
    case "conflicts": .conflicts
    case "rejections": .rejections
    case "activity": .activity
    default: .unknown
    }
  }
}
