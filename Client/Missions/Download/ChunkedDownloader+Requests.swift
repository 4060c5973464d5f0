import FerryProtocol
import Networking

extension ChunkedDownloader {
  /// Makes requests over a transport: content of the server by `server` and the fields that it
  /// wants, such as `Authorization`, which no other address gets.
  ///
  /// - Parameters:
  ///   - server: where `/v1/blobs` is, without a slash at the end.
  ///   - timeout: how long an answer may stay silent.
  public static func requests(
    over transport: any Transport, server: String, headers: TransportHeaders = [:],
    timeout: Duration = .seconds(30)
  ) -> DownloadOpening {
    { (source, fields) async throws(TransportError) -> TransportStream in
      var request =
        switch source {
        case .blob(let hash): TransportRequest(.get, "\(server)/v1/blobs/\(hash)", headers: headers)
        case .url(let url): TransportRequest(.get, url)
        }
      for field in fields.fields { request.headers.add(field.name, field.value) }
      request.timeout = timeout
      request.minimumRate = RequestPace.downloadRateMin
      return try await transport.stream(request)
    }
  }

  /// Makes requests through a client, whose main base is where `/v1/blobs` is.
  ///
  /// Tries follow the downloader's policy, not the client's: it knows what is there already.
  ///
  /// - Parameter timeout: how long an answer may stay silent; nil takes the client's.
  public static func requests(
    through client: NetworkClient, timeout: Duration? = nil
  ) -> DownloadOpening {
    { (source, fields) async throws(TransportError) -> TransportStream in
      var request =
        switch source {
        case .blob(let hash): NetworkRequest("/v1/blobs/\(hash)")
        case .url(let url): NetworkRequest(url: url)
        }
      request.headers = fields
      request.timeout = timeout
      request.minimumRate = RequestPace.downloadRateMin
      request.retry = RetryPolicy(attemptsMax: 1)
      do throws(NetworkError) {
        return try await client.stream(request)
      } catch {
        guard case .rejected(let status, _) = error.kind, let answer = error.response else {
          throw TransportError(error)
        }
        // What a status means for a download is the downloader's to say.
        let nothing = TransportBody(
          next: { () async throws(TransportError) -> [UInt8]? in nil }, cancel: {})
        return TransportStream(status: status, headers: answer.headers, body: nothing)
      }
    }
  }
}

extension TransportError {
  /// What a client failed with, in a transport's terms.
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
      case .notCached, .rejected, .other: .other
      }
    self.init(kind, error.message)
  }
}
