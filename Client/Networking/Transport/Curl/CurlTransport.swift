#if SystemLibraries && !canImport(Darwin)

  /// The transport over libcurl: one thread for all transfers, connections kept and shared.
  ///
  /// It uses HTTP/2 if TLS offers it, and verifies certificates. It follows at most five redirects,
  /// none of them from https to http, and sends credentials to no other host. Requests to loopback
  /// never use a proxy. The thread ends when the transport and all bodies are released.
  public final class CurlTransport: Transport {
    private let engine: CurlEngine

    /// Creates a transport with a thread and connections of its own.
    public convenience init(configuration: TransportConfiguration = TransportConfiguration()) {
      self.init(engine: CurlEngine(configuration))
    }

    /// Creates a transport over `engine`.
    init(engine: CurlEngine) { self.engine = engine }

    /// Limits all transfers together from now on, current ones included.
    public func limitBandwidth(_ limits: BandwidthLimits) { engine.limitBandwidth(limits) }

    public func send(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
      try await send(request, progress: nil)
    }

    public func stream(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportStream {
      try await stream(request, progress: nil)
    }

    public func send(
      _ request: TransportRequest, progress: TransportProgressHandler?
    ) async throws(TransportError) -> TransportResponse {
      let address = try RequestAddress(request.url)
      let collector = ResponseCollector(limit: request.responseLimit)
      let transfer = CurlTransfer(
        request, address, sink: collector, limit: .exchange, progress: progress)
      let outcome = await withTaskCancellationHandler {
        await collector.outcome { engine.start(transfer) }
      } onCancel: {
        collector.finish(transfer.cancellation)
        engine.cancel(transfer)
      }
      return try outcome.get()
    }

    public func stream(
      _ request: TransportRequest, progress: TransportProgressHandler?
    ) async throws(TransportError) -> TransportStream {
      let address = try RequestAddress(request.url)
      let channel = BodyChannel()
      let transfer = CurlTransfer(
        request, address, sink: channel, limit: .silence, progress: progress)
      let engine = engine
      let cancel: @Sendable () -> Void = {
        channel.cancel(transfer.cancellation)
        engine.cancel(transfer)
      }
      let head = await withTaskCancellationHandler {
        await channel.head { engine.start(transfer) }
      } onCancel: {
        cancel()
      }
      let next: TransportBody.Next = { () async throws(TransportError) -> [UInt8]? in
        let part = await withTaskCancellationHandler {
          await channel.next { engine.resume(transfer) }
        } onCancel: {
          cancel()
        }
        return try part.get()
      }
      let body = TransportBody(next: next, cancel: cancel)
      let (status, headers) = try head.map { ($0.status, $0.headers) }.get()
      return TransportStream(status: status, headers: headers, body: body)
    }
  }
#endif
