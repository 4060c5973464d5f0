import FerryHTTPServer
import FerryProtocol

// The requests about a space's schema.
extension SyncService {
  func schema(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let space = try await find(name)
    let store = parts.store
    let schema = try await ask { () async throws(StoreError) in
      try await store.schema(of: space.id)
    }
    return .json(schema.encoded())
  }

  func applySchema(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let document = try schemaDocument(context.request)
    let consent = try Self.consent(context.request)
    let space = try await find(name)
    let (store, mark) = (parts.store, mark(context.principal ?? .anonymous))
    let schema = try await ask { () async throws(StoreError) in
      try await store.applySchema(
        document, to: space.id, now: mark.at, consent: consent, by: mark)
    }.get()
    return .json(schema.encoded())
  }

  /// Decides about a schema as ``applySchema(_:_:)`` does, and changes nothing.
  func checkSchema(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let document = try schemaDocument(context.request)
    let consent = try Self.consent(context.request)
    let space = try await find(name)
    let (store, now) = (parts.store, parts.clock.wall())
    let answer = try await ask { () async throws(StoreError) in
      try await store.checkSchema(document, of: space.id, now: now, consent: consent)
    }
    var json = JSONWriter(capacity: 256)
    switch answer {
    case .success(let schema): schema.writeFit(to: &json)
    case .failure(let problem): problem.writeMisfit(to: &json)
    }
    return .json(json.finish())
  }

  private func schemaDocument(_ request: HTTPRequest) throws(Problem) -> SpaceSchema {
    do {
      return try SpaceSchema(decoding: request.body, limits: parts.limits)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
  }

  private static func consent(_ request: HTTPRequest) throws(Problem) -> SchemaConsent {
    SchemaConsent(
      keepsRecords: try choice("records", of: "check", or: "keep", request),
      dropsRules: try choice("losses", of: "refuse", or: "accept", request))
  }

  /// Returns true for the second value of a parameter, and false for the first one or none.
  private static func choice(
    _ name: String, of first: String, or second: String, _ request: HTTPRequest
  ) throws(Problem) -> Bool {
    switch request.query[name] {
    case nil, first: return false
    case second: return true
    default: throw Problem(.malformedMessage, "\(name) is \(first) or \(second)")
    }
  }

  /// Returns the client's protocol version.
  static func protocolVersion(of request: HTTPRequest) throws(Problem) -> Int {
    let lines = request.headers.values(of: ProtocolVersion.header)
    guard let text = lines.first else { return 1 }
    guard lines.count == 1, let version = Int(text), version >= 1 else {
      throw Problem(
        .malformedMessage, "\(ProtocolVersion.header) is one whole number from 1 up")
    }
    return version
  }
}
