import FerryNetworking
import Foundation

extension DataManager {
  /// Returns the answer to a request as a value, from any source. The manager's envelope is
  /// unwrapped.
  ///
  /// ```swift
  /// let user: User = try await manager.value(for: NetworkRequest("/me"))
  /// ```
  ///
  /// - Throws: kind ``NetworkError/Kind/business(code:)`` if the envelope reports an error, also in
  ///   a response rejected by the filters; ``NetworkError/Kind/undecodable`` if the answer is no
  ///   `Value`.
  public func value<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, for request: NetworkRequest
  ) async throws(NetworkError) -> Value {
    let response: NetworkResponse
    do throws(NetworkError) {
      response = try await data(for: request)
    } catch {
      throw unwrapped(error)
    }
    return try decode(response, for: request)
  }

  /// Returns the answer to a request with the right type.
  public func value<Value: Decodable & Sendable>(
    for request: ValueRequest<Value>
  ) async throws(NetworkError) -> Value {
    try await value(Value.self, for: request.request)
  }

  /// Returns the server's own error, if the envelope of a rejected response has one.
  private func unwrapped(_ error: NetworkError) -> NetworkError {
    guard case .rejected = error.kind, let envelope, let response = error.response,
      EnvelopeFilter.isJSON(response), let failure = envelope.failure(in: response.body)
    else { return error }
    return NetworkError(failure, response)
  }

  private func decode<Value: Decodable>(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> Value {
    if response.body.isEmpty, let optional = Value.self as? any ExpressibleByNilLiteral.Type,
      let none = optional.init(nilLiteral: ()) as? Value
    {
      return none
    }
    let reading: Result<Value, Envelope.Failure>
    do {
      let body = Data(response.body)
      if let envelope {
        reading = try decoder().decode(
          EnvelopeReading<Value>.self, from: body, configuration: envelope
        ).value
      } else {
        reading = .success(try decoder().decode(Value.self, from: body))
      }
    } catch {
      throw NetworkError(
        .undecodable,
        "the answer to \(request.method.rawValue) is no \(Value.self): \(Self.reason(error))",
        response: response)
    }
    do { return try reading.get() } catch { throw NetworkError(error, response) }
  }

  /// Returns the place of a mistake, without values of the answer.
  private static func reason(_ error: any Error) -> String {
    func place(_ path: [any CodingKey]) -> String {
      let names = path.map { key in key.intValue.map { "[\($0)]" } ?? key.stringValue }
      return names.isEmpty ? "the whole" : names.joined(separator: ".")
    }
    return switch error {
    case DecodingError.keyNotFound(let key, let context):
      "“\(key.stringValue)” is missing in \(place(context.codingPath))"
    case DecodingError.valueNotFound(_, let context): "\(place(context.codingPath)) is null"
    case DecodingError.typeMismatch(let type, let context):
      "\(place(context.codingPath)) is no \(type)"
    case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
      "\(place(context.codingPath)) is not valid"
    default: "it is not valid JSON"
    }
  }
}
