import Ferry
import FerryTestSupport
import Foundation
import Synchronization

/// Requests without a replica.
enum Wire {
  private static let transport = CurlTransport()

  struct Answer: Sendable {
    let status: Int
    let headers: TransportHeaders
    let text: String

    /// The body as an object; empty when it is none.
    var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any] ?? [:]
    }

    /// The stable code of a problem document.
    var problem: String? {
      headers["Content-Type"] == "application/problem+json" ? json["code"] as? String : nil
    }
  }

  static func send(
    _ method: TransportMethod, _ url: String, headers: TransportHeaders = [:],
    body: [UInt8]? = nil
  ) async throws -> Answer {
    var headers = headers
    if body != nil, headers["Content-Type"] == nil { headers["Content-Type"] = "application/json" }
    let answer = try await transport.send(
      TransportRequest(method, url, headers: headers, body: body))
    return Answer(
      status: answer.status, headers: answer.headers,
      text: String(decoding: answer.body, as: UTF8.self))
  }
}

/// Sends the same bytes to every client: a server other than Ferry's.
final class CannedServer: Sendable {
  let port: UInt16
  private let listener: Int32

  init(saying text: String) throws {
    let (listener, port) = try LoopbackSocket.listen()
    (self.listener, self.port) = (listener, port)
    Thread.detachNewThread {
      while let client = LoopbackSocket.accept(on: listener) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        if !LoopbackSocket.read(client, &buffer).isEmpty {
          _ = LoopbackSocket.write(client, ArraySlice(text.utf8))
        }
        close(client)
      }
      close(listener)
    }
  }

  deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}
