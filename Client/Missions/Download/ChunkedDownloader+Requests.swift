import FerryNetworking
import FerryProtocol

extension ChunkedDownloader {
  /// Returns a function that makes requests over a transport. Content of the server is requested
  /// from `server` with its header fields, such as `Authorization`; no other address gets them.
  ///
  /// - Parameters:
  ///   - server: the address above `/v1/blobs`, without a slash at the end.
  ///   - timeout: the longest silence of an answer.
  ///   - allowsPrivateAddresses: see ``MissionOptions/allowsPrivateAddresses``.
  public static func requests(
    over transport: any Transport, server: String, headers: TransportHeaders = [:],
    timeout: Duration = .seconds(30), allowsPrivateAddresses: Bool = false
  ) -> DownloadOpening {
    let rule = destinations(of: server, allowsPrivateAddresses)
    return { (source, fields) async throws(TransportError) -> TransportStream in
      var request =
        switch source {
        case .blob(let hash): TransportRequest(.get, "\(server)/v1/blobs/\(hash)", headers: headers)
        case .url(let url), .published(let url): TransportRequest(.get, url)
        case .request(let request): try TransportRequest(request)
        }
      for field in fields.fields { request.headers.add(field.name, field.value) }
      if case .published = source { request.destinations = rule }
      request.timeout = timeout
      request.minimumRate = RequestPace.downloadRateMin
      return try await transport.stream(request)
    }
  }

  /// Returns a function that makes requests through a client with a main base above `/v1/blobs`.
  ///
  /// Retries follow the downloader's policy, not the client's, because the downloader knows the
  /// fetched parts.
  ///
  /// - Parameters:
  ///   - timeout: the longest silence of an answer; `nil` for the client's.
  ///   - allowsPrivateAddresses: see ``MissionOptions/allowsPrivateAddresses``.
  public static func requests(
    through client: NetworkClient, timeout: Duration? = nil, allowsPrivateAddresses: Bool = false
  ) -> DownloadOpening {
    let rule = destinations(of: client.mainAddress ?? "", allowsPrivateAddresses)
    return { (source, fields) async throws(TransportError) -> TransportStream in
      var request =
        switch source {
        case .blob(let hash): NetworkRequest("/v1/blobs/\(hash)")
        case .url(let url), .published(let url): NetworkRequest(url: url)
        case .request(let request): try NetworkRequest(request)
        }
      for field in fields.fields { request.headers.add(field.name, field.value) }
      if case .published = source { request.destinations = rule }
      request.timeout = timeout
      request.minimumRate = RequestPace.downloadRateMin
      request.retry = RetryPolicy(attemptsMax: 1)
      do throws(NetworkError) {
        return try await client.stream(request)
      } catch {
        guard case .rejected(let status, _) = error.kind, let answer = error.response else {
          throw TransportError(error)
        }
        // Only the downloader decides about the meaning of a status.
        let nothing = TransportBody(
          next: { () async throws(TransportError) -> [UInt8]? in nil }, cancel: {})
        return TransportStream(status: status, headers: answer.headers, body: nothing)
      }
    }
  }

  /// Returns the permitted addresses for content of published missions.
  private static func destinations(
    of server: String, _ allowsPrivateAddresses: Bool
  ) -> DestinationRule {
    allowsPrivateAddresses
      ? .any : .publicAddresses(besides: (try? RequestAddress(server))?.host)
  }
}

extension TransportRequest {
  fileprivate init(_ request: ContentRequest) throws(TransportError) {
    self.init(try TransportMethod(request), request.url, body: request.body)
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      headers.add(name, value)
    }
    if !request.headers.isEmpty { redirects = .withinOrigin }
  }
}

extension NetworkRequest {
  fileprivate init(_ request: ContentRequest) throws(TransportError) {
    self.init(url: request.url, method: try TransportMethod(request))
    body = request.body.map { .bytes($0) }
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      headers.add(name, value)
    }
    if !request.headers.isEmpty { redirects = .withinOrigin }
  }
}

extension TransportMethod {
  fileprivate init(_ request: ContentRequest) throws(TransportError) {
    guard let method = TransportMethod(rawValue: request.method) else {
      throw TransportError(.badAddress, "“\(request.method.prefix(20))” is not a method")
    }
    self = method
  }
}

extension TransportError {
  /// Creates a transport's error from a client's.
  fileprivate init(_ error: NetworkError) {
    let kind: Kind =
      switch error.kind {
      case .offline: .offline
      case .timedOut: .timedOut
      case .interrupted: .interrupted
      case .secureConnectionFailed: .secureConnectionFailed
      case .badAddress: .badAddress
      case .redirectRefused: .redirectRefused
      case .responseTooLarge: .responseTooLarge
      case .cancelled: .cancelled
      case .fileFailed: .fileFailed
      case .notCached, .unacceptable, .business, .undecodable, .rejected, .other: .other
      }
    self.init(kind, error.message)
  }
}
