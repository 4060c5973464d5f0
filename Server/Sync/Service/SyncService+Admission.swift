import FerryHTTPServer
import FerryPlatform
import FerryProtocol

// Decisions from before the content of a request is read.
extension SyncService {
  /// Decides if a request's content is worth reading. The request is checked again when it is
  /// answered, and only this check counts.
  package func admission(of arrival: HTTPArrival) -> HTTPAdmission {
    var context = begin(arrival.request)
    do {
      return try admit(arrival, context)
    } catch {
      return refuse(error, &context)
    }
  }

  /// Returns the flow of a request's work until it is admitted: of the caller, if the credential was
  /// admitted within the last minutes, otherwise of the address. It decides about turns, and nothing else.
  ///
  /// - Parameter request: The request; `nil` for one without an address of Ferry's form.
  package func flow(of request: HTTPRequest?, from address: String) -> WorkFlow {
    guard let request else { return WorkFlow(address: address) }
    let (segments, authorization) = (request.segments, request.headers["Authorization"])
    let isInSpace = segments.count > 2 && segments[1] == "spaces"
    let part = isInSpace ? SpaceName(segments[2])?.value : nil
    guard let principal = admissions.principal(of: authorization) else {
      return WorkFlow(address: address, part: part ?? "")
    }
    return WorkFlow(of: principal, in: part, at: address)
  }

  /// Ends the streams of events whose credentials are not valid any more. While the store is not
  /// available, the streams go on.
  package func checkStreams() async {
    let gate = parts.gate
    await streams.end { entry in
      guard let admitted = try? await gate.admit(entry.visitor, to: entry.space, need: .reader)
      else { return nil }
      guard case .failure(let problem) = admitted else { return true }
      return problem.code != .unauthorized && problem.code != .forbidden
    }
  }

  private func admit(
    _ arrival: HTTPArrival, _ context: RequestContext
  ) throws(Problem) -> HTTPAdmission {
    let (request, match) = (context.request, context.match)
    // A preflight has a route, but no endpoint.
    let isPreflight = try parts.crossOrigin.preflight(request, match.route) != nil
    // A request for nothing that exists is refused for good, also by a full server.
    let endpoint = try isPreflight ? nil : self.endpoint(of: context)
    let isServedOnReserve = endpoint?.isServedOnReserve ?? false
    if arrival.isOnReserve, !isServedOnReserve {
      throw Problem(
        .unavailable,
        "the server has reached its limit of connections; send the request again in a moment")
    }
    if arrival.isBeyondShare, !isServedOnReserve { throw Problem(.tooManyRequests) }
    guard arrival.hasContent, let content = endpoint?.content, let need = endpoint?.need
    else { return .proceed(limit: 0) }
    let limit = content.limit(parts.limits)
    if let length = arrival.declaredLength, length > limit { return .proceed(limit: limit) }
    guard let text = match.spaceText else { return admitToken(request, context, limit) }
    let name = try space(named: text)
    // A web page's request is judged each time: the origin counts as well.
    let memory = request.headers["Origin"] == nil ? admissions : nil
    let key = AdmissionMemory.Key(
      authorization: request.headers["Authorization"], space: name, need: need)
    if let principal = memory?.principal(of: key) {
      return .proceed(limit: limit, account: principal.memoryAccount)
    }
    return .decide { [self] in
      var context = context
      context.space = name
      return await flow(of: request, from: request.remoteAddress).run {
        do throws(Problem) {
          let principal = try await admit(request, match.route, to: name, need: need).principal
          memory?.store(principal, for: key)
          return .proceed(limit: limit, account: principal.memoryAccount)
        } catch {
          return refuse(error, &context)
        }
      }
    }
  }

  /// Admits a request about tokens, which is about no single space.
  private func admitToken(
    _ request: HTTPRequest, _ context: RequestContext, _ limit: Int
  ) -> HTTPAdmission {
    .decide { [self] in
      var context = context
      return await flow(of: request, from: request.remoteAddress).run {
        do throws(Problem) {
          let identity = try await identify(request, context.match.route)
          return .proceed(limit: limit, account: identity.principal.memoryAccount)
        } catch {
          return refuse(error, &context)
        }
      }
    }
  }

  private func refuse(_ problem: Problem, _ context: inout RequestContext) -> HTTPAdmission {
    context.span = beginSpan(of: context)
    let response = refusal(problem, &context)
    record(
      context, status: response.status,
      bytesOut: response.contentCount(for: context.request.method))
    return .refuse(response)
  }
}

extension Principal {
  /// The account to charge for the memory of contents and answers. An open server has no accounts.
  var memoryAccount: String? { self == .anonymous ? nil : account.id }
}
