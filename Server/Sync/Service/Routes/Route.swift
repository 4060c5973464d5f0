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
