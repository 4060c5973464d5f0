import FerryHTTPServer
import FerryPlatform
import FerryProtocol

/// Admits requests, and counts them against the rates.
struct RequestAccess: Sendable {
  let core: ServiceCore
  let gate: AccessGate
  let admissions: AdmissionMemory

  init(_ core: ServiceCore, gate: AccessGate) {
    (self.core, self.gate) = (core, gate)
    admissions = AdmissionMemory(clock: core.clock)
  }

  /// Returns the caller as the gate sees it.
  static func visitor(_ request: HTTPRequest, _ route: Route) -> Visitor {
    var visitor = Visitor(
      headers: request.headers, address: request.remoteAddress,
      takesAnyContent: route == .upload)
    if !request.body.isEmpty { visitor.hasContent = true }
    return visitor
  }

  static func space(named text: String) throws(Problem) -> SpaceName {
    guard let name = SpaceName(text) else {
      throw Problem(
        .unknownSpace,
        "a space's name has 1 to 63 characters of A–Z a–z 0–9 . _ - and begins with a letter or "
          + "digit")
    }
    return name
  }

  // MARK: One space

  /// Admits a request to its space, and counts it.
  func enter(
    _ context: inout RequestContext, need: Role?
  ) async throws(Problem) -> (SpaceName, Admission) {
    let name = try Self.space(named: context.match.spaceText ?? "")
    context.space = name
    let admission = try await admit(context, to: name, need: need ?? .admin)
    context.principal = admission.principal
    context.isServerAdmin = admission.isServerAdmin
    admissions.store(admission.principal, of: context.request.headers["Authorization"])
    try count(&context)
    return (name, admission)
  }

  private func admit(
    _ context: RequestContext, to space: SpaceName, need: Role
  ) async throws(Problem) -> Admission {
    let (request, match) = (context.request, context.match)
    // The transaction of a packet looks whether tokens exist.
    if match.route == .packets,
      let admission = gate.admitAssumingOpen(
        Self.visitor(request, match.route), to: space, need: need)
    {
      return admission
    }
    return try await admit(request, match.route, to: space, need: need)
  }

  func admit(
    _ request: HTTPRequest, _ route: Route, to space: SpaceName, need: Role
  ) async throws(Problem) -> Admission {
    let visitor = Self.visitor(request, route)
    return try await core.ask { (_) async throws(StoreError) in
      try await gate.admit(visitor, to: space, need: need)
    }.get()
  }

  // MARK: No single space

  /// Returns the caller of a route about the administration of the server.
  func caller(_ context: inout RequestContext) async throws(Problem) -> Identity {
    let identity = try await administrator(context.request, context.match.route)
    context.principal = identity.principal
    try count(&context)
    return identity
  }

  /// Returns the sender of a request without a single space.
  ///
  /// Throws `forbidden` if the sender administers no space.
  func administrator(
    _ request: HTTPRequest, _ route: Route
  ) async throws(Problem) -> Identity {
    let identity = try await identify(request, route)
    guard identity.grants.administersAny else {
      throw Problem(.forbidden, "this needs the role admin")
    }
    return identity
  }

  /// Returns the caller of a route about the caller's own spaces, who may have any rights.
  func user(_ context: inout RequestContext) async throws(Problem) -> Identity {
    let identity = try await identify(context.request, context.match.route)
    context.principal = identity.principal
    try count(&context)
    return identity
  }

  /// Returns the sender of a request, who may have any rights.
  func identify(_ request: HTTPRequest, _ route: Route) async throws(Problem) -> Identity {
    let visitor = Self.visitor(request, route)
    return try await core.ask { (_) async throws(StoreError) in
      try await gate.identify(visitor)
    }.get()
  }

  // MARK: Rates and turns

  /// Counts an admitted request against the rates of the principal and of the space, and assigns
  /// the work to the principal's flow.
  func count(_ context: inout RequestContext) throws(Problem) {
    guard let principal = context.principal else { return }
    WorkFlow(
      of: principal, in: context.space?.value, at: context.request.remoteAddress
    ).assign()
    guard let excess = gate.countRequest(of: principal, in: context.space)
    else { return }
    context.retryAfter = excess.wait
    let reason =
      switch excess.limit {
      case .principal: "\(principal.account) sends more than this server's rate allows"
      case .space: "this space gets more than this server's rate allows, and much of it from you"
      }
    throw .rateLimited(reason, excess.wait)
  }

  /// Returns the flow of a request's work until it is admitted: of the caller, if the credential was
  /// admitted within the last minutes, otherwise of the address. It decides about turns, and nothing else.
  ///
  /// - Parameter request: The request; `nil` for one without an address of Ferry's form.
  func flow(of request: HTTPRequest?, from address: String) -> WorkFlow {
    guard let request else { return WorkFlow(address: address) }
    let (segments, authorization) = (request.segments, request.headers["Authorization"])
    let isInSpace = segments.count > 2 && segments[1] == "spaces"
    let part = isInSpace ? SpaceName(segments[2])?.value : nil
    guard let principal = admissions.principal(of: authorization) else {
      return WorkFlow(address: address, part: part ?? "")
    }
    return WorkFlow(of: principal, in: part, at: address)
  }
}

extension Principal {
  /// The account to charge for the memory of contents and answers. An open server has no accounts.
  var memoryAccount: String? { self == .anonymous ? nil : account.id }
}
