import FerryNetworking
import FerryProtocol

/// The endpoints for the comparison of a device with the space, and their traffic.
struct VerifyAPI: Sendable {
  let api: SyncAPI
  let limits: Limits

  /// The bytes of one exchange.
  struct Traffic: Sendable {
    var sent = 0
    var received = 0
  }

  func digests(_ query: DigestQuery) async throws -> (DigestAnswer, Traffic) {
    let (body, traffic) = try await post("/digests", query.encoded())
    return (try DigestAnswer(decoding: body, limits: limits), traffic)
  }

  /// Fetches the whole state of these records; the server may omit the last ones.
  func records(_ keys: [RecordKey]) async throws -> ([Change], Traffic) {
    let (body, traffic) = try await post("/records", RecordsRequest(keys: keys).encoded())
    var changes: [Change] = []
    _ = try body.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: limits) { changes.append($0) }
    }
    return (changes, traffic)
  }

  private func post(_ path: String, _ body: [UInt8]) async throws -> ([UInt8], Traffic) {
    let answer = try await api.send(.post, path, body: body)
    return (answer.body, Traffic(sent: body.count, received: answer.body.count))
  }
}
