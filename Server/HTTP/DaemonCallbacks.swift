import CMicroHTTPD
import Glibc

/// What libmicrohttpd calls, on its threads, with a retained `ServerCore` as context. Each
/// request's context is a retained `Exchange`, made with its request line.
enum DaemonCallbacks {
  static let requestLine:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
      UnsafeMutableRawPointer? = { context, target, connection in
        guard let core = core(context), let connection else { return nil }
        let exchange = Exchange(
          core: core, target: target.map { String(cString: $0) } ?? "",
          socket: ferry_mhd_socket(connection),
          remoteAddress: SocketAddress.host(of: ferry_mhd_peer(connection)))
        return Unmanaged.passRetained(exchange).toOpaque()
      }

  static let access: MHD_AccessHandlerCallback = {
    _, connection, _, method, _, piece, size, slot in
    guard let connection, let method, let size, let exchange = exchange(slot) else {
      return .NO
    }
    let piece = UnsafeRawBufferPointer(start: piece, count: size.pointee)
    // All of it is taken, whatever becomes of it.
    size.pointee = 0
    return exchange.proceed(connection, method: method, piece: piece) ? .YES : .NO
  }

  static let completed: MHD_RequestCompletedCallback = { _, connection, slot, reason in
    guard let connection, let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
      .ended(connection, isComplete: reason == .REQUEST_TERMINATED_COMPLETED_OK)
  }

  static let connection: MHD_NotifyConnectionCallback = { context, connection, _, event in
    guard event == .CONNECTION_NOTIFY_CLOSED, let connection, let core = core(context)
    else { return }
    let socket = ferry_mhd_socket(connection)
    // Such as headers beyond the limit, which were answered without being read to the end.
    if PendingInput(peeking: socket) == .some { LingeringClose.begin(socket) }
    core.acceptor.connectionClosed()
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

extension Exchange {
  /// The request's header fields, in order. Bytes that are not UTF-8 are replaced.
  func receivedHeaders(of connection: OpaquePointer) -> HTTPHeaders {
    var headers = HTTPHeaders()
    withUnsafeMutablePointer(to: &headers) { headers in
      _ = MHD_get_connection_values_n(
        connection, .HEADER_KIND,
        { headers, _, name, nameSize, value, valueSize in
          let headers = headers?.assumingMemoryBound(to: HTTPHeaders.self)
          headers?.pointee.append(text(name, nameSize), text(value, valueSize))
          return .YES
        }, headers)
    }
    return headers
  }
}

private func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
  String(
    decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self)
}
