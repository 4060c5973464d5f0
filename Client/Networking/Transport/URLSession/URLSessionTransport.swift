import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The transport over Foundation's URLSession, for systems without libcurl.
///
/// It follows the rules of ``Transport`` about redirects and secret fields, and keeps neither
/// cookies nor a cache. These limits come from URLSession:
///
/// - It does not show when a connection is made, so `connectTimeout` has no effect: for an
///   unreachable server, the limit of the whole exchange or of a silence counts.
/// - It cannot limit bandwidth, and has one pool of connections without a limit.
/// - A request with a body needs another method than GET. A body without a `Content-Type` is sent
///   as `application/octet-stream`. The system adds `Accept-Language` and `Connection`.
/// - It decodes bodies, also if the request has an `Accept-Encoding`.
/// - A range of a file is copied to a temporary file before it is sent.
///
/// On Linux, Foundation's own URLSession has further ones: it trusts no other authorities than the
/// process does, reads the proxies from the environment, and cannot pause a transfer. A body fails
/// there if the reader leaves more than 64 MiB waiting. Of several fields with one name, it keeps
/// one. A file that becomes shorter while it is sent fails only when the time is over.
///
/// ```swift
/// let client = NetworkClient(configuration, transport: URLSessionTransport())
/// ```
public final class URLSessionTransport: TransferTransport {
  private let session: URLSession
  private let transfers: SessionTransfers
  private let userAgent: String
  /// An unsupported setting.
  private let fault: TransportError?

  /// Creates a transport with separate connections.
  public init(configuration: TransportConfiguration = TransportConfiguration()) {
    let settings = URLSessionConfiguration.ephemeral
    settings.urlCache = nil
    settings.urlCredentialStorage = nil
    settings.httpCookieStorage = nil
    settings.httpShouldSetCookies = false
    settings.httpCookieAcceptPolicy = .never
    settings.requestCachePolicy = .reloadIgnoringLocalCacheData
    // The limits of requests are watched here.
    settings.timeoutIntervalForRequest = 7 * 24 * 3600
    settings.timeoutIntervalForResource = 7 * 24 * 3600
    settings.httpMaximumConnectionsPerHost = configuration.connectionsPerHostMax ?? 10_000
    fault = Self.fault(configuration)
    userAgent = configuration.userAgent
    #if canImport(Darwin)
      if let proxy = configuration.proxy.flatMap(SystemProxy.init) {
        settings.connectionProxyDictionary = proxy.dictionary
      }
    #endif
    transfers = SessionTransfers(certificateAuthorities: configuration.certificateAuthorities)
    // One call at a time, as a delegate expects it.
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    session = URLSession(configuration: settings, delegate: transfers, delegateQueue: queue)
  }

  deinit { session.finishTasksAndInvalidate() }

  func transfer(
    _ request: TransportRequest, to sink: any TransferSink, limit: TransferLimit,
    _ progress: TransportProgressHandler?
  ) throws(TransportError) -> any Transfer {
    if let fault { throw fault }
    let address = try RequestAddress(request.url)
    if let refusal = request.destinations.refusal(of: address) { throw refusal }
    guard let url = SessionRequest.url(request.url) else {
      throw TransportError(.badAddress, "“\(request.url)” is not an address")
    }
    if let name = request.headers.unsendableName {
      throw TransportError(
        .other, "\(address.endpoint): field \(name.debugDescription) cannot be sent")
    }
    let body = try SessionBody(request)
    if body != nil && request.method == .get {
      throw TransportError(
        .other, "URLSession cannot send a body with GET: \(address.endpoint)")
    }
    #if !canImport(Security)
      if let file = request.certificateAuthorities {
        throw Self.cannot("trust the authorities in \(file)")
      }
    #endif
    return SessionTransfer(
      SessionRequest(request, url: url, userAgent: userAgent, body: body),
      address: address, sink: sink, limit: limit, progress: progress, session: session,
      registry: transfers)
  }

  /// Returns the error for the first setting unsupported by URLSession on this system.
  private static func fault(_ configuration: TransportConfiguration) -> TransportError? {
    if configuration.bandwidth != BandwidthLimits() { return cannot("limit bandwidth") }
    #if !canImport(Security)
      if let file = configuration.certificateAuthorities {
        return cannot("trust the authorities in \(file)")
      }
      if configuration.proxy != nil {
        return cannot("use another proxy than the environment's (http_proxy, https_proxy)")
      }
    #endif
    return nil
  }

  private static func cannot(_ what: String) -> TransportError {
    TransportError(
      .other,
      "URLSession cannot \(what) on this system; the transport over libcurl can (trait SystemLibraries)"
    )
  }
}

#if canImport(Darwin)
  /// A proxy's address as a session's configuration expects it.
  private struct SystemProxy {
    let dictionary: [AnyHashable: Any]

    /// Reads an address; an empty one means no proxy. `nil` if it has no host.
    init?(_ address: String) {
      if address.isEmpty {
        dictionary = [:]
        return
      }
      guard let url = URL(string: address), let host = url.host else { return nil }
      let port = url.port ?? (url.scheme == "https" ? 443 : 80)
      dictionary = [
        "HTTPEnable": true, "HTTPProxy": host, "HTTPPort": port,
        "HTTPSEnable": true, "HTTPSProxy": host, "HTTPSPort": port,
        "ExceptionsList": ["localhost", "127.0.0.1", "::1"],
      ]
    }
  }
#endif
