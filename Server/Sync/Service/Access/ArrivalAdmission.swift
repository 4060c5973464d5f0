import FerryHTTPServer
import FerryProtocol

/// Decides if a request's content is worth reading, when the headers are complete.
struct ArrivalAdmission: Sendable {
  let access: RequestAccess
  let recorder: RequestRecorder
  let crossOrigin: CrossOriginRule
  let limits: Limits

  /// Decides about a request. The request is checked again when it is answered, and only this check
  /// counts.
  func decide(_ arrival: HTTPArrival) -> HTTPAdmission {
    var context = recorder.begin(arrival.request)
    do {
      return try admit(arrival, context)
    } catch {
      return refuse(error, &context)
    }
  }

  private func admit(
    _ arrival: HTTPArrival, _ context: RequestContext
  ) throws(Problem) -> HTTPAdmission {
    let (request, match) = (context.request, context.match)
    // A preflight has a route, but no endpoint.
    let isPreflight = try crossOrigin.preflight(request, match.route) != nil
    // A request for nothing that exists is refused for good, also by a full server.
    let endpoint = try isPreflight ? nil : context.endpoint()
    let isServedOnReserve = endpoint?.isServedOnReserve ?? false
    if arrival.isOnReserve, !isServedOnReserve {
      throw Problem(
        .unavailable,
        "the server has reached its limit of connections; send the request again in a moment")
    }
    if arrival.isBeyondShare, !isServedOnReserve { throw Problem(.tooManyRequests) }
    guard arrival.hasContent, let content = endpoint?.content else { return .proceed(limit: 0) }
    let limit = content.limit(limits)
    if let length = arrival.declaredLength, length > limit { return .proceed(limit: limit) }
    guard let text = match.spaceText, let need = endpoint?.need else {
      return admitCaller(request, context, limit, need: endpoint?.need)
    }
    let name = try RequestAccess.space(named: text)
    // A web page's request is judged each time: the origin counts as well.
    let memory = request.headers["Origin"] == nil ? access.admissions : nil
    let key = AdmissionMemory.Key(
      authorization: request.headers["Authorization"], space: name, need: need)
    if let principal = memory?.principal(of: key) {
      return .proceed(limit: limit, account: principal.memoryAccount)
    }
    return .decide {
      var context = context
      context.space = name
      return await access.flow(of: request, from: request.remoteAddress).run {
        do throws(Problem) {
          let admission = try await access.admit(request, match.route, to: name, need: need)
          memory?.store(admission.principal, for: key)
          return .proceed(limit: limit, account: admission.principal.memoryAccount)
        } catch {
          return refuse(error, &context)
        }
      }
    }
  }

  /// Admits a request about no single space: about tokens, or about the caller's own spaces.
  ///
  /// - Parameter need: The role in any space; `nil` if every caller with a credential may send it.
  private func admitCaller(
    _ request: HTTPRequest, _ context: RequestContext, _ limit: Int, need: Role?
  ) -> HTTPAdmission {
    .decide {
      var context = context
      return await access.flow(of: request, from: request.remoteAddress).run {
        do throws(Problem) {
          let route = context.match.route
          let identity =
            try await need == nil
            ? access.identify(request, route) : access.administrator(request, route)
          return .proceed(limit: limit, account: identity.principal.memoryAccount)
        } catch {
          return refuse(error, &context)
        }
      }
    }
  }

  private func refuse(_ problem: Problem, _ context: inout RequestContext) -> HTTPAdmission {
    context.span = recorder.beginSpan(of: context)
    let response = context.refuse(problem)
    recorder.record(context, response)
    return .refuse(response)
  }
}
