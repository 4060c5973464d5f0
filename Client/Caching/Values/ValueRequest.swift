import FerryNetworking

/// A request and the type of the answer, for groups of requests.
public struct ValueRequest<Value: Decodable & Sendable>: Sendable {
  /// The request.
  public var request: NetworkRequest

  /// Creates a request with a `Value` as the answer.
  public init(_ request: NetworkRequest, as type: Value.Type = Value.self) {
    self.request = request
  }
}

extension NetworkRequest {
  /// Returns this request with a `Value` as the answer.
  public func answer<Value: Decodable & Sendable>(_ type: Value.Type) -> ValueRequest<Value> {
    ValueRequest(self)
  }
}
