import FerryNetworking
import FerryTestSupport

/// The transports that follow the rules of ``Transport``.
enum TransportUnderTest: CaseIterable {
  case libcurl
  case urlSession

  /// The transports that can pause a transfer: on Linux, Foundation's URLSession buffers everything
  /// received.
  static let pausing: [Self] = [.libcurl]

  /// Creates a transport with default settings.
  func make() -> any Transport {
    switch self {
    case .libcurl: CurlTransport()
    case .urlSession: URLSessionTransport()
    }
  }
}

extension TransportRequest {
  /// The same with as much time as a test has: a busy machine may take it.
  var patient: Self {
    var patient = self
    (patient.timeout, patient.connectTimeout) = (.hangLimit, .hangLimit)
    return patient
  }
}

extension Transport {
  /// Returns the error of a request that cannot succeed.
  func failure(
    _ request: TransportRequest, _ progress: TransportProgressHandler? = nil
  ) async throws -> TransportError {
    let response: TransportResponse
    do throws(TransportError) {
      response = try await send(request, progress: progress)
    } catch {
      return error
    }
    throw UnexpectedAnswer(status: response.status)
  }
}

private struct UnexpectedAnswer: Error {
  let status: Int
}
