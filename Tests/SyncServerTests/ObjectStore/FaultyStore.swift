import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization

/// A server before a real S3-compatible one, which passes all requests on, and plays faults for
/// some of them.
final class FaultyStore: Sendable {
  /// A fault of one request.
  enum Fault: Sendable {
    /// The request is not passed on.
    case answer(HTTPResponse)
    /// The store's answer is changed.
    case change(@Sendable (HTTPResponse) -> HTTPResponse)
  }

  private struct Plan {
    var isMeant: @Sendable (HTTPRequest) -> Bool
    var fault: Fault
    var times: Int
  }

  private let plans = Mutex([Plan]())
  private let seen = Mutex([String]())
  private let server: HTTPServer

  var endpoint: String { "http://127.0.0.1:\(server.port)" }

  /// Method and query of each request so far.
  var requests: [String] { seen.withLock { $0 } }

  init(before store: ObjectStoreServer) throws {
    let (target, transport) = (store.endpoint, SystemTransport())
    let forward = Mutex<(@Sendable (HTTPRequest) async -> HTTPResponse)?>(nil)
    server = try HTTPServer(configuration: HTTPServer.Configuration(bodyLimit: 64 << 20)) {
      request in
      guard let forward = forward.withLock({ $0 }) else { return HTTPResponse(status: 503) }
      return await forward(request)
    }
    forward.withLock {
      $0 = { [weak self] in
        await self?.forward($0, to: target, over: transport) ?? HTTPResponse(status: 503)
      }
    }
  }

  /// Plays a fault for the next matching requests.
  func play(
    _ fault: Fault, times: Int = 1, for isMeant: @escaping @Sendable (HTTPRequest) -> Bool
  ) {
    plans.withLock { $0.append(Plan(isMeant: isMeant, fault: fault, times: times)) }
  }

  func stop() async { await server.stop(grace: .zero) }

  private func fault(for request: HTTPRequest) -> Fault? {
    plans.withLock { plans in
      guard let index = plans.firstIndex(where: { $0.times > 0 && $0.isMeant(request) }) else {
        return nil
      }
      plans[index].times -= 1
      return plans[index].fault
    }
  }

  private func forward(
    _ request: HTTPRequest, to target: String, over transport: SystemTransport
  ) async -> HTTPResponse {
    let query = request.query.sorted { $0.key < $1.key }.map {
      "\(PercentEncoding.encode($0.key))=\(PercentEncoding.encode($0.value))"
    }.joined(separator: "&")
    seen.withLock { $0.append("\(request.method) \(query)") }
    let fault = fault(for: request)
    if case .answer(let answer) = fault { return answer }
    var passed = TransportRequest(
      TransportMethod(rawValue: request.method) ?? .get,
      target + request.path + (query.isEmpty ? "" : "?" + query))
    for field in request.headers.fields
    where !["content-length", "connection"].contains(field.name.lowercased()) {
      passed.headers.add(field.name, field.value)
    }
    if !request.body.isEmpty || request.method == "PUT" { passed.body = request.body }
    do {
      let answer = try await transport.send(passed)
      var headers = HTTPHeaders()
      for field in answer.headers.fields
      where !["content-length", "connection", "date", "transfer-encoding"].contains(
        field.name.lowercased())
      {
        headers[field.name] = field.value
      }
      let length = answer.headers["Content-Length"].flatMap { Int($0) } ?? 0
      // The answer to HEAD only states a length.
      let body: HTTPResponse.Body =
        request.method == "HEAD" ? .relay(HTTPStream(), count: length) : .bytes(answer.body)
      let response = HTTPResponse(status: answer.status, headers: headers, body: body)
      if case .change(let change) = fault { return change(response) }
      return response
    } catch {
      return HTTPResponse(status: 502)
    }
  }
}

extension HTTPResponse {
  /// An error as S3-compatible stores answer it.
  static func storeError(_ status: Int, _ code: String) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["Content-Type": "application/xml"],
      body: .bytes(Array("<Error><Code>\(code)</Code><Message>no</Message></Error>".utf8)))
  }
}
