import FerryHTTPServer
import FerryProtocol

/// A method of a route: the role and the content that it needs, the memory of its answer, and its
/// handler.
package struct Endpoint: Sendable {
  /// The content that is read.
  package enum Content: Sendable {
    case message
    /// A request about tokens.
    case tokenRequest

    /// Returns the largest content, in bytes.
    package func limit(_ limits: Limits) -> Int {
      switch self {
      case .message: limits.messageBytes
      case .tokenRequest: 64 << 10
      }
    }
  }

  /// Builds the answer to a request that passed the checks of its kind.
  enum Handler: Sendable {
    /// Of every caller.
    case open(
      @Sendable (Handlers) -> (inout RequestContext) async throws(Problem) -> HTTPResponse)
    /// Of a caller who administers some space.
    case administrator(
      @Sendable (Handlers) -> (RequestContext, Identity) async throws(Problem) -> HTTPResponse)
    /// Of every caller with a credential, about the caller's own spaces.
    case user(
      @Sendable (Handlers) -> (RequestContext, Identity) async throws(Problem) -> HTTPResponse)
    /// About a space whose members the caller is one of.
    case space(
      @Sendable (Handlers) -> (RequestContext, SpaceName) async throws(Problem) -> HTTPResponse)
    /// The same, of a handler that uses the caller's rights.
    case member(
      @Sendable (Handlers) -> (inout RequestContext, SpaceName, Admission)
        async throws(Problem) -> HTTPResponse)
  }

  package let method: String
  /// The role that is needed; `nil` if every caller may use it.
  package let need: Role?
  /// `nil` if a request has no content.
  package let content: Content?
  /// The memory of the answer while it is built.
  let memory: AnswerSize
  let handler: Handler
  /// Whether it is answered although all ordinary connections are taken.
  let isServedOnReserve: Bool

  init(
    _ method: String, _ need: Role?, content: Content? = nil, memory: AnswerSize = .small,
    isServedOnReserve: Bool? = nil, _ handler: Handler
  ) {
    self.method = method
    self.need = need
    self.content = content
    self.memory = memory
    self.handler = handler
    self.isServedOnReserve = isServedOnReserve ?? (need == .admin)
  }

  /// Returns the endpoints of GET and HEAD.
  static func reading(
    _ need: Role?, memory: AnswerSize = .small, isServedOnReserve: Bool? = nil,
    _ handler: Handler
  ) -> [Endpoint] {
    ["GET", "HEAD"].map {
      Endpoint($0, need, memory: memory, isServedOnReserve: isServedOnReserve, handler)
    }
  }
}
