import Compression

/// Takes in one request and decides when it is refused. Pure: no socket, no clock.
struct RequestIntake {
  let method: String
  let headers: HTTPHeaders
  private let target: Result<RequestTarget, HTTPFailure>
  private let coding: Result<ContentCoding?, HTTPFailure>
  private let limit: Int
  private var body: [UInt8] = []
  private(set) var wireBytes = 0
  private var declaredLength: Int?

  /// `target` is the request target as sent; `limit` holds before and after decoding, in bytes.
  init(method: String, target: String, headers: HTTPHeaders, limit: Int) {
    self.method = method
    self.headers = headers
    self.limit = limit
    self.target = Result { () throws(HTTPFailure) in try RequestTarget(parsing: target) }
    self.coding = Result { () throws(HTTPFailure) in
      try Self.coding(of: headers.list(of: "Content-Encoding"))
    }
  }

  /// Why the request is refused before its content is read, or nil to go on.
  mutating func refusalBeforeContent() -> HTTPFailure? {
    let lengths = headers.values(of: "Content-Length")
    let transferCodings = headers.values(of: "Transfer-Encoding")
    if lengths.count + transferCodings.count > 1 { return .ambiguousLength }
    if let coding = transferCodings.first, coding.lowercased() != "chunked" {
      return .ambiguousLength
    }
    guard let length = lengths.first else { return nil }
    guard let length = Int(length), length <= limit else { return .contentTooLarge(limit: limit) }
    declaredLength = length
    if keepsContent { body.reserveCapacity(length) }
    return nil
  }

  /// Takes a piece of content; answers why the rest is not read, or nil to go on.
  mutating func receive(_ piece: UnsafeRawBufferPointer) -> HTTPFailure? {
    wireBytes += piece.count
    guard wireBytes <= limit else { return .contentTooLarge(limit: limit) }
    if keepsContent { body.append(contentsOf: piece) }
    return nil
  }

  /// Whether the declared length says that content is missing.
  var lacksContent: Bool { wireBytes < declaredLength ?? 0 }

  /// The request, once all content is here. Undoes the content coding, so it may take a while.
  func request(remoteAddress: String) throws(HTTPFailure) -> HTTPRequest {
    let target = try target.get()
    return HTTPRequest(
      method: method, path: target.path, segments: target.segments, query: target.query,
      headers: headers, body: try decodedBody(), bodyWireBytes: wireBytes,
      remoteAddress: remoteAddress)
  }

  /// A request that will be refused is still read, so that its connection can be kept.
  private var keepsContent: Bool {
    if case .success = target, case .success = coding { true } else { false }
  }

  private func decodedBody() throws(HTTPFailure) -> [UInt8] {
    guard let coding = try coding.get(), !body.isEmpty else { return body }
    do {
      return try coding.decompress(body, limit: limit)
    } catch .tooLarge {
      throw .contentTooLarge(limit: limit)
    } catch {
      throw .malformedContent
    }
  }

  /// The one coding that was applied, or nil for none.
  private static func coding(of list: String?) throws(HTTPFailure) -> ContentCoding? {
    guard let list else { return nil }
    let tokens = list.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
      .filter { !$0.isEmpty && $0.lowercased() != "identity" }
    guard let token = tokens.first else { return nil }
    guard tokens.count == 1, let coding = ContentCoding(token: token) else {
      throw .unsupportedCoding(list)
    }
    return coding
  }
}
