#if SystemLibraries && !canImport(Darwin)

  /// The transport over libcurl: one thread for all transfers, connections kept and shared.
  ///
  /// It uses HTTP/2 if TLS offers it, and verifies certificates. It follows at most five redirects,
  /// none of them from https to http, and sends credentials to no other host. Requests to loopback
  /// never use a proxy. The thread ends when the transport and all bodies are released.
  public final class CurlTransport: TransferTransport {
    private let engine: CurlEngine

    /// Creates a transport with a thread and connections of its own.
    public convenience init(configuration: TransportConfiguration = TransportConfiguration()) {
      self.init(engine: CurlEngine(configuration))
    }

    /// Creates a transport over `engine`.
    init(engine: CurlEngine) { self.engine = engine }

    /// Limits all transfers together from now on, current ones included.
    public func limitBandwidth(_ limits: BandwidthLimits) { engine.limitBandwidth(limits) }

    func transfer(
      _ request: TransportRequest, to sink: any TransferSink, limit: TransferLimit,
      _ progress: TransportProgressHandler?
    ) throws(TransportError) -> any Transfer {
      let address = try RequestAddress(request.url)
      return CurlExchange(
        transfer: CurlTransfer(request, address, sink: sink, limit: limit, progress: progress),
        engine: engine)
    }
  }

  /// A transfer with its engine.
  private struct CurlExchange: Transfer {
    let transfer: CurlTransfer
    let engine: CurlEngine

    var cancellation: TransportError { transfer.cancellation }

    func start() { engine.start(transfer) }

    func resume() { engine.resume(transfer) }

    func cancel() { engine.cancel(transfer) }
  }
#endif
