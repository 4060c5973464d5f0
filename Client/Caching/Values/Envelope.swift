import FerryNetworking
import FerryPlatform
import Foundation

/// The object around each value in a server's responses, such as `{"code": 0, "data": …}`.
///
/// The ``DataManager`` unwraps it. Paths name members, with dots between them: `result.items`.
///
/// ```swift
/// let plain = Envelope(payload: "data", code: "code", success: ["0"], message: "message")
/// let other = Envelope(payload: "data", code: "error.code", message: "error.text", error: "error")
/// ```
public struct Envelope: Sendable, Equatable {
  /// The path of the value; `nil` if the value has no object around it.
  public var payload: String?
  /// The path of the code: a text, a number or a truth value.
  public var code: String?
  /// The codes of a success, as texts; not used with ``error``.
  public var success: Set<String>
  /// The path of the reason of an error.
  public var message: String?
  /// The path of a member found only in errors: any value but `null` is an error.
  public var error: String?

  /// Creates an envelope.
  public init(
    payload: String?, code: String? = nil, success: Set<String> = ["0"],
    message: String? = "message", error: String? = nil
  ) {
    self.payload = payload
    self.code = code
    self.success = success
    self.message = message
    self.error = error
  }

  /// An error of the server's own.
  struct Failure: Error, Equatable {
    let code: String
    let message: String?
  }

  /// Reads the error from an envelope; `nil` if it reports a success or is no envelope.
  func failure(in object: JSONObject) -> Failure? {
    let code = code.flatMap { object.text(at: $0) }
    if let error {
      guard object.hasValue(at: error) else { return nil }
    } else {
      guard let code, !success.contains(code) else { return nil }
    }
    return Failure(code: code ?? "", message: message.flatMap { object.text(at: $0) })
  }

  /// Returns the error in a body; `nil` if it reports a success or is no envelope.
  func failure(in body: [UInt8]) -> Failure? {
    let reading = try? JSONDecoder().decode(
      FailureReading.self, from: Data(body), configuration: self)
    return reading?.failure
  }
}

/// Rejects successful responses with an error in their envelope.
struct EnvelopeFilter: ResponseFilter {
  let envelope: Envelope

  func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse {
    guard Self.isJSON(response), let failure = envelope.failure(in: response.body) else {
      return response
    }
    throw NetworkError(failure, response)
  }

  /// Returns true if the body is JSON by the media type (RFC 6839 §3.1), or has no type.
  static func isJSON(_ response: NetworkResponse) -> Bool {
    guard !response.body.isEmpty else { return false }
    guard let type = response.headers.values(of: "Content-Type").first else { return true }
    let name = FieldList.trimmed(type.until(";")).lowercasedASCII
    return name == "application/json" || name == "text/json" || name.ends(with: "+json")
  }
}

extension NetworkError {
  /// Creates the error for an envelope that reports one.
  init(_ failure: Envelope.Failure, _ response: NetworkResponse) {
    let code = failure.code.isEmpty ? "an error" : "the error \(failure.code)"
    self.init(
      .business(code: failure.code),
      "the server reports \(code)" + (failure.message.map { ": \($0)" } ?? ""), response: response)
  }
}

/// Decodes the error of an envelope, if it has one.
struct FailureReading: DecodableWithConfiguration {
  let failure: Envelope.Failure?

  init(from decoder: any Decoder, configuration: Envelope) throws {
    failure = configuration.failure(in: try JSONObject(decoder))
  }
}

/// Decodes the value in an envelope.
struct EnvelopeReading<Value: Decodable>: DecodableWithConfiguration {
  let value: Result<Value, Envelope.Failure>

  init(from decoder: any Decoder, configuration: Envelope) throws {
    let object = try? JSONObject(decoder)
    if let failure = object.flatMap({ configuration.failure(in: $0) }) {
      value = .failure(failure)
      return
    }
    guard let payload = configuration.payload else {
      value = .success(try Value(from: decoder))
      return
    }
    value = .success(try JSONObject(decoder).value(at: payload))
  }
}
