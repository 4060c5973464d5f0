import FerryPlatform

/// Makes a transport request from a request and the defaults: a pure rule.
struct RequestAssembly: Sendable {
  let configuration: NetworkConfiguration
  /// The source of the boundaries of forms.
  var random: @Sendable () -> UInt64 = { .random(in: .min ... .max) }

  /// Assembles the complete request; throws kind `badAddress`.
  func assemble(_ request: NetworkRequest) throws(NetworkError) -> AssembledRequest {
    let (endpoint, baseHeaders) = try endpoint(of: request)
    let query = query(of: request)
    let address: RequestAddress
    let url = Self.append(query, to: endpoint)
    do {
      address = try RequestAddress(url)
    } catch {
      throw NetworkError(error)
    }
    var headers = configuration.headers
    headers.replace(with: baseHeaders)
    if let type = request.body?.contentType { headers["Content-Type"] = type }
    let accepts = (request.accepts ?? configuration.accepts).map(AcceptedTypes.init)
    if let accepts { headers["Accept"] = accepts.field }
    headers.replace(with: request.headers)
    var form: MultipartEncoding?
    if case .form(let content) = request.body { form = MultipartEncoding(content, random: random) }
    if let form { headers["Content-Type"] = form.contentType }
    var transport = TransportRequest(
      request.method, url, headers: headers, timeout: request.timeout ?? configuration.timeout,
      connectTimeout: request.connectTimeout ?? configuration.connectTimeout,
      responseLimit: request.responseLimit ?? configuration.responseLimit)
    transport.redirects = request.redirects ?? configuration.redirects
    transport.destinations = request.destinations
    transport.certificateAuthorities = configuration.certificateAuthorities
    transport.minimumRate = request.minimumRate
    // The transport omits these two by itself.
    transport.privateFields = baseHeaders.fields.filter {
      !$0.isNamed("Authorization") && !$0.isNamed("Cookie")
    }.map(\.name)
    switch request.body {
    case .bytes(let bytes, _): transport.body = bytes
    case .file(let path, let range, _): transport.file = FileSlice(path: path, range: range)
    case .form: transport.parts = try form?.parts() ?? []
    case nil: break
    }
    let key = CacheableRequest(
      method: request.method, endpoint: endpoint, query: query, headers: headers,
      user: InterceptorChain(interceptors: configuration.interceptors).seeing(request.base).user)
    return AssembledRequest(
      transport: transport, host: address.name, retry: request.retry ?? configuration.retry,
      mayRepeat: request.mayRepeat, accepts: accepts, cacheable: cacheable(request, key),
      change: request.method == .get || request.method == .head ? nil : key)
  }

  /// Returns the common parameters, then the request's own.
  private func query(of request: NetworkRequest) -> [QueryItem] {
    if case .absolute = request.base { return request.query }
    let own = Set(request.query.map(\.name))
    return configuration.query.filter { !own.contains($0.name) } + request.query
  }

  /// Returns the request for the cache, or `nil`. A conditional request is about the caller's own
  /// copy, and a range is not the whole answer: a cache answers neither.
  private func cacheable(
    _ request: NetworkRequest, _ key: CacheableRequest
  ) -> CacheableRequest? {
    guard case .use(let options) = request.cache ?? configuration.cache, request.method == .get,
      request.body == nil, !key.headers.hasCondition, key.headers["Range"] == nil
    else { return nil }
    var cacheable = key
    cacheable.options = options
    return cacheable
  }

  // MARK: The address

  private func endpoint(
    of request: NetworkRequest
  ) throws(NetworkError) -> (String, TransportHeaders) {
    let base: BaseURL
    switch request.base {
    case .main:
      guard let main = configuration.main else {
        throw NetworkError(.badAddress, "the client has no main address for \(request.path)")
      }
      base = main
    case .alternative(let name):
      guard let alternative = configuration.alternatives[name] else {
        throw NetworkError(.badAddress, "the client has no address named “\(name)”")
      }
      base = alternative
    case .absolute(let url):
      guard request.path.isEmpty else {
        throw NetworkError(.badAddress, "an absolute address takes no path: \(request.path)")
      }
      // A fragment belongs to the caller (RFC 9110 §4.2.5).
      return (String(url.until("#")), [:])
    }
    guard !base.url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
    else {
      throw NetworkError(.badAddress, "the base \(base.url) has a query or a fragment")
    }
    return (try Self.join(base.url, request.path), base.headers)
  }

  /// Joins base and path with one slash, however many they have.
  private static func join(_ base: String, _ path: String) throws(NetworkError) -> String {
    if path.isEmpty { return base }
    guard path.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x3F && $0 != 0x23 }) else {
      throw NetworkError(
        .badAddress, "the path \(path.debugDescription) is not percent-encoded, or has a query")
    }
    // Such segments would lead out of the base (RFC 3986 §5.2.4).
    for segment in path.utf8.split(separator: UInt8(ascii: "/")) where isDotSegment(segment) {
      throw NetworkError(.badAddress, "the path \(path) has a segment “\(Substring(segment))”")
    }
    var base = base.utf8[...]
    while base.last == UInt8(ascii: "/") { base.removeLast() }
    return Substring(base) + (path.utf8.first == UInt8(ascii: "/") ? "" : "/") + path
  }

  /// Returns true if a segment is `.` or `..`, percent-encoded or not. Longer segments are not
  /// decoded.
  private static func isDotSegment(_ segment: Substring.UTF8View) -> Bool {
    guard segment.count <= "%2e%2e".utf8.count else { return false }
    let plain = Substring(segment).lowercasedASCII.replacing(bytes: "%2e", with: ".")
    return plain == "." || plain == ".."
  }

  private static func append(_ query: [QueryItem], to endpoint: String) -> String {
    if query.isEmpty { return endpoint }
    let items = query.map {
      PercentEncoding.encode($0.name) + "=" + PercentEncoding.encode($0.value)
    }
    // An absolute address may already have a query.
    return endpoint + (endpoint.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")
      + items.joined(separator: "&")
  }
}

/// A request as it travels, with the rules for it.
struct AssembledRequest: Sendable, Equatable {
  var transport: TransportRequest
  /// The host without the brackets of an IPv6 literal.
  var host: String
  var retry: RetryPolicy
  var mayRepeat: Bool
  /// The media types of a successful response; `nil` for any.
  var accepts: AcceptedTypes?
  /// The request for the cache; `nil` if no cache is asked.
  var cacheable: CacheableRequest?
  /// The change to report to the cache after a success, whatever the rule (RFC 9111 §4.4); `nil`
  /// for requests without a change.
  var change: CacheableRequest?
}

extension AssembledRequest {
  /// True if only a cache may answer, and no server (RFC 9111 §5.2.1.7).
  var isOnlyIfCached: Bool {
    transport.headers.values(of: "Cache-Control").contains { value in
      value.utf8.split(separator: UInt8(ascii: ",")).contains { part in
        let word = part.filter { $0 != 0x20 && $0 != 0x09 }
        return String(decoding: word, as: UTF8.self).lowercasedASCII == "only-if-cached"
      }
    }
  }
}

extension RequestAddress {
  /// The host without the brackets of an IPv6 literal.
  fileprivate var name: String {
    host.begins(with: "[") ? String(host.dropFirst().dropLast()) : host
  }
}
