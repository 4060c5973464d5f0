/// One exchange of a transport, into a sink.
protocol Transfer: Sendable {
  /// The error for a cancelled caller.
  var cancellation: TransportError { get }

  /// Begins; the sink receives all further events.
  func start()

  /// Continues after the sink has made room.
  func resume()

  /// Ends the transfer, also before it begins.
  func cancel()
}

/// The scope of a request's timeout.
enum TransferLimit {
  /// The whole exchange.
  case exchange
  /// Each time without a byte moving.
  case silence
}

/// A transport whose exchanges are transfers into sinks, and report progress themselves.
protocol TransferTransport: Transport {
  /// Returns a transfer that has not begun yet; throws for an impossible request or setting.
  func transfer(
    _ request: TransportRequest, to sink: any TransferSink, limit: TransferLimit,
    _ progress: TransportProgressHandler?
  ) throws(TransportError) -> any Transfer
}

extension TransferTransport {
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
    let collector = ResponseCollector(limit: request.responseLimit)
    let transfer = try transfer(request, to: collector, limit: .exchange, progress)
    let outcome = await withTaskCancellationHandler {
      await collector.outcome { transfer.start() }
    } onCancel: {
      collector.finish(transfer.cancellation)
      transfer.cancel()
    }
    return try outcome.get()
  }

  public func stream(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportStream {
    let channel = BodyChannel()
    let transfer = try transfer(request, to: channel, limit: .silence, progress)
    let cancel: @Sendable () -> Void = {
      channel.cancel(transfer.cancellation)
      transfer.cancel()
    }
    let head = await withTaskCancellationHandler {
      await channel.head { transfer.start() }
    } onCancel: {
      cancel()
    }
    let next: TransportBody.Next = { () async throws(TransportError) -> [UInt8]? in
      let part = await withTaskCancellationHandler {
        await channel.next { transfer.resume() }
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
