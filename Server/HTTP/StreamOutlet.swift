/// The control of a live body over the connection.
struct StreamOutlet: HTTPStream.Outlet {
  let exchange: Exchange
  let registry: ConnectionRegistry
  let socket: Int32
  let connection: ConnectionHandle

  func suspend() -> Bool { registry.suspend(exchange, connection) }

  func resume() { registry.resume(exchange) }

  func disconnect() { registry.disconnect(exchange) }

  /// Returns whether the peer is gone. Called on the connection's thread, where the socket is still
  /// open.
  func isPeerGone() -> Bool { PendingInput(peeking: socket) == .ended }
}
