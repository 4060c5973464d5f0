import FerryPlatform
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A request and the address of the next attempt: a pure value.
struct SessionRequest: Sendable {
  /// The caller's request.
  let request: TransportRequest
  private(set) var url: URL
  private(set) var method: TransportMethod
  /// The body; `nil` if there is none, or if a redirect has removed it.
  private(set) var body: SessionBody?
  private let userAgent: String
  /// True if `Authorization` and `Cookie` may go to ``url``.
  private var sendsCredentials = true

  init(_ request: TransportRequest, url: URL, userAgent: String, body: SessionBody?) {
    self.request = request
    self.url = url
    self.userAgent = userAgent
    self.body = body
    method = request.method
  }

  /// Reads an absolute address. Unlike URL itself, it corrects nothing.
  static func url(_ text: String) -> URL? { URL(string: text, encodingInvalidCharacters: false) }

  /// Returns true if redirects of the method are followed.
  static func followsRedirects(_ method: TransportMethod) -> Bool {
    switch method {
    case .get, .head, .post: true
    case .put, .patch, .delete: false
    }
  }

  /// Applies a redirect to the address.
  ///
  /// - Parameters:
  ///   - location: the field `Location`.
  ///   - status: the redirect's status: 303 turns a POST into a GET without a body.
  ///   - first: the address of the caller's request.
  ///   - previous: the address before; afterwards the next one.
  /// - Throws: `redirectRefused` or `secureConnectionFailed`, as ``RedirectCheck`` decides, and
  ///   `other` for a location other than an http address.
  mutating func redirect(
    _ location: String, status: Int, first: RequestAddress, previous: inout RequestAddress
  ) throws(TransportError) {
    guard let next = URL(string: location, relativeTo: url)?.absoluteURL,
      let address = try? RequestAddress(next.absoluteString)
    else {
      throw TransportError(
        .other, "\(first.endpoint) redirects to an address that is not one of http")
    }
    if status == 303 && method == .post { (method, body) = (.get, nil) }
    if let refusal = request.destinations.refusal(of: address) { throw refusal }
    let check = RedirectCheck(request: request, first: first)
    if let refusal = check.refusal(of: address, after: previous, sendsBody: body != nil) {
      throw refusal
    }
    previous = address
    url = next
    sendsCredentials = address.hasSameOrigin(as: first)
  }

  /// The request for URLSession, without a body.
  var head: URLRequest {
    var result = URLRequest(url: url)
    result.httpMethod = method.rawValue
    result.httpShouldHandleCookies = false
    for field in request.headers.fields {
      let isCredential = field.isNamed("Authorization") || field.isNamed("Cookie")
      if isCredential && !sendsCredentials { continue }
      result.addValue(field.value, forHTTPHeaderField: field.name)
    }
    if request.headers["User-Agent"] == nil {
      result.setValue(userAgent, forHTTPHeaderField: "User-Agent")
    }
    if body != nil && request.headers["Content-Type"] == nil {
      result.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
    }
    return result
  }
}

/// The body of a request: bytes, or a file to be read by URLSession.
struct SessionBody: Sendable {
  enum Content: Sendable {
    case bytes(Data)
    case file(URL)
  }

  let content: Content
  /// The number of bytes.
  let count: Int
  /// The error of a file that has become shorter; `nil` for a whole one.
  var shortening: TransportError? {
    guard case .file(let url) = content else { return nil }
    var status = stat()
    guard stat(url.path, &status) == 0, status.st_size >= count else {
      return TransportError(.fileFailed, "\(url.path) was shortened during the transfer")
    }
    return nil
  }
  /// Removes the copy of a range or of parts when the last request with it has ended.
  private let copy: TemporaryCopy?

  /// Opens the body of a request; `nil` if it has none.
  ///
  /// - Throws: kind `fileFailed` if the file cannot be read or lacks the requested bytes.
  init?(_ request: TransportRequest) throws(TransportError) {
    if !request.parts.isEmpty {
      let source = try BodySource(request)
      let copy = try TemporaryCopy(of: source)
      (content, count, self.copy) = (.file(copy.url), source.count, copy)
      return
    }
    guard let slice = request.file else {
      guard let bytes = request.body else { return nil }
      (content, count, copy) = (.bytes(Data(bytes)), bytes.count, nil)
      return
    }
    let source = try BodySource(request)
    count = source.count
    if slice.range == nil {
      (content, copy) = (.file(URL(filePath: slice.path)), nil)
    } else {
      let copy = try TemporaryCopy(of: source)
      (content, self.copy) = (.file(copy.url), copy)
    }
  }
}

/// A temporary file with a part of another one, or with the parts of a body.
private final class TemporaryCopy: Sendable {
  let url: URL

  init(of source: BodySource) throws(TransportError) {
    url = FileManager.default.temporaryDirectory.appending(
      path: "ferry-\(UUID().uuidString).body")
    let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(url) }
    defer { close(descriptor) }
    let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { part.deallocate() }
    while true {
      var rest = part[..<(try source.read(into: part))]
      if rest.isEmpty { return }
      while !rest.isEmpty {
        let count = write(
          descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { throw Self.failure(url) }
        rest = rest.dropFirst(count)
      }
    }
  }

  deinit { unlink(url.path) }

  private static func failure(_ url: URL) -> TransportError {
    TransportError(
      .fileFailed, "\(url.path) cannot be written: \(String(cString: strerror(errno)))")
  }
}
