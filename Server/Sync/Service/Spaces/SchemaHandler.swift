import FerryHTTPServer
import FerryProtocol

/// Answers requests about a space's schema.
struct SchemaHandler: Sendable {
  let core: ServiceCore

  func show(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let space = try await core.find(name)
    let schema = try await core.ask { (store) async throws(StoreError) in
      try await store.schema(of: space.id)
    }
    return .json(schema.encoded())
  }

  func apply(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let document = try document(context.request)
    let consent = try Self.consent(context.request)
    let space = try await core.find(name)
    let mark = core.mark(context.principal ?? .anonymous)
    let schema = try await core.ask { (store) async throws(StoreError) in
      try await store.applySchema(
        document, to: space.id, now: mark.at, consent: consent, by: mark)
    }.get()
    return .json(schema.encoded())
  }

  /// Decides about a schema as ``apply(_:_:)`` does, and changes nothing.
  func check(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let document = try document(context.request)
    let consent = try Self.consent(context.request)
    let space = try await core.find(name)
    let now = core.clock.wall()
    let answer = try await core.ask { (store) async throws(StoreError) in
      try await store.checkSchema(document, of: space.id, now: now, consent: consent)
    }
    var json = JSONWriter(capacity: 256)
    switch answer {
    case .success(let schema): schema.writeFit(to: &json)
    case .failure(let problem): problem.writeMisfit(to: &json)
    }
    return .json(json.finish())
  }

  private func document(_ request: HTTPRequest) throws(Problem) -> SpaceSchema {
    do {
      return try SpaceSchema(decoding: request.body, limits: core.limits)
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
}
