/// Changes requests before they are sent, and judges their responses: the place for signatures and
/// tokens.
///
/// It sees each attempt of each request to the client's bases: uploads, downloads and streams, too.
/// Requests to absolute addresses pass by, so no other server gets a token. Fields added here go to
/// no other origin: a redirect there fails, except for `Authorization` and `Cookie`, which are
/// omitted.
///
/// Responses are altered by a ``ResponseFilter``.
///
/// ```swift
/// struct Signature: RequestInterceptor {
///   let user: String? = nil
///   func prepare(
///     _ request: inout TransportRequest, for original: NetworkRequest
///   ) async throws(NetworkError) {
///     request.headers["X-Signature"] = sign(request.method.rawValue + request.url)
///   }
/// }
/// ```
public protocol RequestInterceptor: Sendable {
  /// The user of the credentials added by the interceptor; `nil` if it adds none. A cache keeps the
  /// responses of different users apart.
  var user: String? { get }

  /// Returns true if the interceptor sees requests to a base; by default all but absolute
  /// addresses.
  func sees(_ base: BaseAddress) -> Bool

  /// Changes a complete request before an attempt.
  ///
  /// - Throws: the reason not to send it. The request's policy repeats transient errors.
  func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError)

  /// Judges a server's response before the filters see it; by default accepts it.
  ///
  /// - Throws: the reason why the request fails.
  func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview
}

extension RequestInterceptor {
  /// Returns true if the base is one of the client's own.
  public func sees(_ base: BaseAddress) -> Bool {
    if case .absolute = base { return false }
    return true
  }

  /// Changes nothing.
  public func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) {}

  /// Accepts the response.
  public func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview {
    .accept
  }
}

/// A request as it was sent, and the response.
public struct AnsweredRequest: Sendable {
  /// The caller's request.
  public let request: NetworkRequest
  /// The request as it travelled, with the fields of all interceptors.
  public let sent: TransportRequest
  /// The response; the body is empty for streams and downloads.
  public let response: NetworkResponse
  /// True if ``AnswerReview/sendAgain`` has an effect: a request is sent again once.
  public let maySendAgain: Bool
}

/// The judgement of an interceptor.
public enum AnswerReview: Sendable, Equatable {
  /// The filters judge the response next.
  case accept
  /// Send the request once more, prepared again. For responses that prove that the server did
  /// nothing, such as 401: a POST is sent again as well.
  case sendAgain
}

/// The interceptors of a client, one after another.
struct InterceptorChain: Sendable {
  let interceptors: [any RequestInterceptor]

  /// Returns the interceptors for requests to a base.
  func seeing(_ base: BaseAddress) -> InterceptorChain {
    InterceptorChain(interceptors: interceptors.filter { $0.sees(base) })
  }

  /// The users of all interceptors; `nil` if none adds credentials.
  var user: String? {
    let users = interceptors.compactMap(\.user)
    return users.isEmpty ? nil : users.map { "\($0.utf8.count):\($0)" }.joined()
  }

  /// Prepares a request for one attempt.
  func prepare(
    _ request: TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) -> TransportRequest {
    var prepared = request
    for interceptor in interceptors { try await interceptor.prepare(&prepared, for: original) }
    for field in prepared.headers.fields
    where request.headers[field.name] != prepared.headers[field.name] {
      // The transport omits these two by itself.
      if field.isNamed("Authorization") || field.isNamed("Cookie") { continue }
      if !prepared.privateFields.contains(field.name) { prepared.privateFields.append(field.name) }
    }
    return prepared
  }

  /// Returns true if one of the interceptors wants the request to be sent again.
  func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview {
    for interceptor in interceptors {
      if try await interceptor.review(answered) == .sendAgain { return .sendAgain }
    }
    return .accept
  }
}
