import FerryCompression
import FerryPlatform

/// The intake of one request, which decides when it is refused. Pure: no socket, no clock.
struct RequestIntake {
  /// Content is first decoded into so many times its size, then into as many times more. No ratio
  /// is too large: the limit and the budget for memory bound a bomb.
  private static let expansionStep = 8

  let method: String
  let headers: HTTPHeaders
  private let framing: Result<RequestFraming, HTTPFailure>
  private let target: Result<RequestTarget, HTTPFailure>
  private let coding: Result<ContentCoding?, HTTPFailure>
  /// True if the content may be larger after decoding.
  var isCoded: Bool { (try? coding.get()) != nil }
  private var limit: Int
  private var body: [UInt8] = []
  private(set) var wireBytes = 0
  /// `nil` for as long as it has taken nothing.
  private var memory: MemoryShare?
  private let budget: MemoryBudget
  private var account: String?

  /// `target` is the request target as sent; `limit` holds before and after decoding, in bytes.
  init(
    method: String, target: String, headers: HTTPHeaders, version: String = "HTTP/1.1",
    limit: Int, budget: MemoryBudget
  ) {
    self.method = method
    self.headers = headers
    self.limit = limit
    let target = Result { () throws(HTTPFailure) in try RequestTarget(parsing: target) }
    self.target = target
    framing = Result { () throws(HTTPFailure) in
      try RequestFraming(
        headers: headers, version: version, authority: (try? target.get())?.authority)
    }
    self.coding = Result { () throws(HTTPFailure) in
      try Self.coding(of: headers.list(of: "Content-Encoding"))
    }
    self.budget = budget
  }

  /// The reason why the request is refused and the connection closed before any other check.
  var framingFailure: HTTPFailure? {
    guard case .failure(let failure) = framing else { return nil }
    return failure
  }

  /// Bytes announced by the headers; `nil` if they announce none.
  var declaredLength: Int? { (try? framing.get())?.declaredLength }

  /// True if content follows.
  var hasContent: Bool { declaredLength != 0 }

  /// True if the client waits to be asked for the content.
  var expectsContinue: Bool { (try? framing.get())?.expectsContinue ?? false }

  /// Returns the request before the content is read; `nil` if no handler will see it.
  func head(remoteAddress: String) -> HTTPRequest? {
    guard let target = try? target.get(), case .success = coding else { return nil }
    return HTTPRequest(
      method: method, path: target.path, segments: target.segments, query: target.query,
      headers: headers, remoteAddress: remoteAddress)
  }

  /// Sets the limit of this request and the account for the memory. Returns the reason why the
  /// content is not read, or `nil` to go on.
  mutating func admit(limit: Int, account: String? = nil) -> HTTPFailure? {
    self.limit = min(self.limit, limit)
    self.account = account
    guard let length = declaredLength else { return nil }
    guard length <= self.limit else { return .contentTooLarge(limit: self.limit) }
    return nil
  }

  /// Receives a piece of content; returns the reason why the rest is not read, or nil to go on.
  mutating func receive(_ piece: UnsafeRawBufferPointer) -> HTTPFailure? {
    wireBytes += piece.count
    guard wireBytes <= limit else { return .contentTooLarge(limit: limit) }
    guard keepsContent else { return nil }
    if wireBytes > memory?.count ?? 0 {
      let whole = min(limit, declaredLength ?? limit)
      let steps = (wireBytes - 1) / MemoryBudget.step + 1
      guard grow(to: min(whole, steps * MemoryBudget.step)) else { return .outOfMemory }
      // Untouched pages take no memory.
      if body.isEmpty, let length = declaredLength { body.reserveCapacity(length) }
    }
    body.append(contentsOf: piece)
    return nil
  }

  /// True if content is missing by the declared length.
  var lacksContent: Bool { wireBytes < declaredLength ?? 0 }

  /// Returns the request, once all content is here. Undoes the content coding, so it may take a
  /// while.
  mutating func request(remoteAddress: String) throws(HTTPFailure) -> HTTPRequest {
    let target = try target.get()
    return HTTPRequest(
      method: method, path: target.path, segments: target.segments, query: target.query,
      headers: headers, body: try decodedBody(), bodyWireBytes: wireBytes,
      remoteAddress: remoteAddress)
  }

  /// A request is still read before the refusal, to keep the connection.
  private var keepsContent: Bool {
    if case .success = target, case .success = coding { true } else { false }
  }

  private mutating func grow(to count: Int) -> Bool {
    guard count > 0 else { return true }
    let share = memory ?? MemoryShare(of: budget, account: account)
    memory = share
    return share.grow(to: count)
  }

  private mutating func decodedBody() throws(HTTPFailure) -> [UInt8] {
    let coding = try coding.get()
    var coded: [UInt8] = []
    swap(&coded, &body)
    guard let coding, !coded.isEmpty else { return coded }
    var room = min(limit, coded.count * Self.expansionStep)
    while true {
      // While it is decoded it needs room for both forms.
      guard grow(to: coded.count + room) else { throw .outOfMemory }
      do {
        let content = try coding.decompress(coded, limit: room)
        memory?.shrink(to: coded.count + content.count)
        return content
      } catch .tooLarge {
        guard room < limit else { throw .contentTooLarge(limit: limit) }
        room = min(limit, room * Self.expansionStep)
      } catch {
        throw .malformedContent
      }
    }
  }

  /// Returns the one applied coding, or `nil` for none.
  private static func coding(of list: String?) throws(HTTPFailure) -> ContentCoding? {
    guard let list else { return nil }
    let tokens = list.words(at: ",").map { String($0.trimmedBlanks) }
      .filter { !$0.isEmpty && $0.lowercasedASCII != "identity" }
    guard let token = tokens.first else { return nil }
    guard tokens.count == 1, let coding = ContentCoding(token: token) else {
      throw .unsupportedCoding(list)
    }
    return coding
  }
}
