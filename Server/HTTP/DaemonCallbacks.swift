import CFerryMicroHTTPD
import Glibc

/// The functions called by libmicrohttpd, on its threads, with a retained `ServerCore` as context.
/// Each request's context is a retained `Exchange`, made with the request line.
enum DaemonCallbacks {
  static let requestLine:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
      UnsafeMutableRawPointer? = { context, target, connection in
        guard let core = core(context), let connection else { return nil }
        let exchange = Exchange(
          core: core, target: RequestLineTarget(target), connection: connection)
        return Unmanaged.passRetained(exchange).toOpaque()
      }

  static let access: MHD_AccessHandlerCallback = {
    _, _, _, method, version, piece, size, slot in
    guard let method, let version, let size, let exchange = exchange(slot) else { return .NO }
    let piece = UnsafeRawBufferPointer(start: piece, count: size.pointee)
    // All of it is consumed, even if the request is refused.
    size.pointee = 0
    return exchange.proceed((method, version), piece: piece) ? .YES : .NO
  }

  static let completed: MHD_RequestCompletedCallback = { _, _, slot, reason in
    guard let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
      .ended(isComplete: reason == .REQUEST_TERMINATED_COMPLETED_OK)
  }

  static let connection: MHD_NotifyConnectionCallback = { context, connection, slot, event in
    guard let connection, let slot, let core = core(context) else { return }
    let socket = ferry_mhd_socket(connection)
    guard event == .CONNECTION_NOTIFY_CLOSED else {
      let client = core.connections.connection(of: socket)
      slot.pointee = client.map { Unmanaged.passRetained($0).toOpaque() }
      return
    }
    // Such as headers beyond the limit, which were answered without being read to the end.
    if PendingInput(peeking: socket) == .some { LingeringClose.begin(socket) }
    guard let pointer = slot.pointee else { return }
    slot.pointee = nil
    core.acceptor.connectionClosed(
      Unmanaged<ClientConnection>.fromOpaque(pointer).takeRetainedValue())
  }

  static let fault: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
    guard let core = core(context) else { return }
    let thread = pthread_self()
    for exchange in core.registry.exchanges where exchange.thread == thread {
      exchange.answerDaemonFault()
    }
  }

  static func client(of connection: OpaquePointer) -> ClientConnection? {
    ferry_mhd_socket_context(connection).map {
      Unmanaged<ClientConnection>.fromOpaque($0).takeUnretainedValue()
    }
  }

  private static func core(_ context: UnsafeMutableRawPointer?) -> ServerCore? {
    context.map { Unmanaged<ServerCore>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func exchange(
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) -> Exchange? {
    slot?.pointee.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
  }
}
