import FerryCryptography
import FerryNetworking
import Foundation
import Synchronization

/// A request to an S3-compatible store.
struct ObjectStoreRequest: Sendable {
  enum Payload: Sendable {
    case none
    case bytes([UInt8])
    /// A part of a file, with a SHA-256.
    case file(FileSlice, hash: [UInt8], count: Int64)
  }

  var method: TransportMethod
  /// The object; `nil` for the bucket.
  var key: String?
  var query: [(name: String, value: String)] = []
  /// Fields to sign.
  var headers: [(name: String, value: String)] = []
  var payload = Payload.none
  /// Bytes of an answer in memory.
  var responseLimit = 16 << 20
  /// The element of the answer: an error may come after the status. `nil` for any content.
  var answerName: String?

  init(
    _ method: TransportMethod, _ key: String? = nil, query: [(name: String, value: String)] = []
  ) {
    (self.method, self.key, self.query) = (method, key, query)
  }
}

/// Requests to one bucket: signed, and sent again after a temporary failure. All of them may be
/// sent twice.
package final class ObjectStoreClient: Sendable {
  package let settings: ObjectStoreSettings
  private let source: AWSCredentialSource
  private let transport: any Transport
  private let now: @Sendable () -> Int64
  private let sleep: @Sendable (Duration) async throws -> Void
  private let known: Mutex<AWSCredentials>

  /// The longest silence.
  private static let silence = Duration.seconds(30)
  /// The lowest rate at which content is sent, in bytes a second.
  private static let rateMin: Int64 = 64 << 10

  /// - Parameters:
  ///   - now: Seconds since 1970.
  ///   - sleep: How time passes between attempts.
  package init(
    _ settings: ObjectStoreSettings, _ source: AWSCredentialSource, transport: any Transport,
    now: @escaping @Sendable () -> Int64 = { Int64(Date.now.timeIntervalSince1970) },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) throws(ObjectStoreError) {
    (self.settings, self.source, self.transport) = (settings, source, transport)
    (self.now, self.sleep) = (now, sleep)
    known = Mutex(try source.credentials())
  }

  /// Throws unless the bucket is there and the key may list it.
  package func check() async throws(ObjectStoreError) {
    _ = try await list(after: nil, limit: 1)
  }

  /// Returns an address at which everybody can read an object for a while.
  ///
  /// It reads the key again, because nothing reports a refusal of the address. If this fails, the
  /// last key stays.
  func address(of key: String, validity: Int) -> String {
    let new = try? source.credentials()
    let credentials = known.withLock { known in
      if let new { known = new }
      return known
    }
    let signature = AWSSignature(credentials, region: settings.region)
    let path = "/\(settings.bucket)/" + AWSSignature.percentEncoded(key, keepsSlashes: true)
    let query = signature.presignedQuery(
      of: AWSSignature.Request(method: "GET", host: settings.host, path: path), at: now(),
      validity: validity)
    return settings.endpoint + path + "?" + AWSSignature.encoded(query)
  }

  // MARK: Requests

  /// Returns an answer of status 2xx; throws the others.
  func send(_ request: ObjectStoreRequest) async throws(ObjectStoreError) -> TransportResponse {
    try await attempts(request) { (signed) async throws(ObjectStoreError) in
      let answer: TransportResponse
      do { answer = try await self.transport.send(signed) } catch { throw Self.error(error) }
      guard answer.isSuccess else {
        throw ObjectStoreError(status: answer.status, body: answer.body)
      }
      if let name = request.answerName, ObjectStoreXML(answer.body)?.name != name {
        throw ObjectStoreError(status: 500, body: answer.body)
      }
      return answer
    }
  }

  /// Returns the head of an answer of status 2xx, with the body to come; throws the others.
  func stream(_ request: ObjectStoreRequest) async throws(ObjectStoreError) -> TransportStream {
    try await attempts(request) { (signed) async throws(ObjectStoreError) in
      var signed = signed
      signed.timeout = Self.silence
      do {
        let answer = try await self.transport.stream(signed)
        if 200..<300 ~= answer.status { return answer }
        var body: [UInt8] = []
        for try await part in answer.body {
          body += part
          if body.count >= 64 << 10 { break }
        }
        throw ObjectStoreError(status: answer.status, body: body)
      } catch {
        throw Self.error(error)
      }
    }
  }

  private func attempts<Answer: Sendable>(
    _ request: ObjectStoreRequest,
    _ body: (TransportRequest) async throws(ObjectStoreError) -> Answer
  ) async throws(ObjectStoreError) -> Answer {
    var attempt = 1
    var hasNewKey = false
    while true {
      let credentials = known.withLock { $0 }
      do {
        return try await body(signed(request, credentials))
      } catch {
        if error.isAboutKey, !hasNewKey, try readKey(besides: credentials) {
          hasNewKey = true
          continue
        }
        guard let pause = ObjectStoreRetry.pause(after: attempt, error) else { throw error }
        attempt += 1
        do { try await sleep(pause) } catch { throw .cancelled }
      }
    }
  }

  /// Reads the key again. Returns whether it is another one.
  private func readKey(besides old: AWSCredentials) throws(ObjectStoreError) -> Bool {
    let new = try source.credentials()
    known.withLock { $0 = new }
    return new != old
  }

  private func signed(
    _ request: ObjectStoreRequest, _ credentials: AWSCredentials
  ) -> TransportRequest {
    let object = request.key.map { "/" + AWSSignature.percentEncoded($0, keepsSlashes: true) }
    let path = "/\(settings.bucket)" + (object ?? "")
    let signature = AWSSignature(credentials, region: settings.region)
    let toSign = AWSSignature.Request(
      method: request.method.rawValue, host: settings.host, path: path, query: request.query,
      headers: request.headers)
    let hash: String
    var count: Int64 = 0
    var result = TransportRequest(request.method, "")
    switch request.payload {
    case .none: hash = AWSSignature.emptyHash
    case .bytes(let bytes):
      hash = Hexadecimal.text(SHA256.digest(of: bytes))
      (count, result.body) = (Int64(bytes.count), bytes)
    case .file(let slice, let digest, let size):
      hash = Hexadecimal.text(digest)
      (count, result.file) = (size, slice)
    }
    let query = AWSSignature.encoded(request.query)
    result.url = settings.endpoint + path + (query.isEmpty ? "" : "?" + query)
    let added = signature.headers(of: toSign, payloadHash: hash, at: now())
    for (name, value) in request.headers + added { result.headers.add(name, value) }
    // The bytes as they are kept, never compressed.
    result.headers.add("Accept-Encoding", "identity")
    result.timeout = Self.silence + .seconds(count / Self.rateMin)
    result.responseLimit = request.responseLimit
    result.redirects = .withinOrigin
    return result
  }

  private static func error(_ error: any Error) -> ObjectStoreError {
    switch error {
    case let error as ObjectStoreError: error
    case let error as TransportError where error.kind == .cancelled: .cancelled
    case let error as TransportError:
      .unreachable(error.message, isTransient: error.isTransient)
    default: .unreachable("\(error)", isTransient: false)
    }
  }
}
