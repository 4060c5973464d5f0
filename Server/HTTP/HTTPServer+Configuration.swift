extension HTTPServer {
  /// How a server runs.
  package struct Configuration: Sendable {
    /// `127.0.0.1`, `[::1]`, `0.0.0.0`, `::` (IPv4 as well), or any address of this machine.
    package var address: String
    /// 0 takes any free port.
    package var port: UInt16
    /// Threads that read and write sockets. Handlers run elsewhere.
    package var threads: Int
    /// Bytes of request content, before and after decoding.
    package var bodyLimit: Int
    /// Connections at once, live bodies included; further ones wait in the kernel's queue.
    package var connectionLimit: Int
    /// How long a connection may be silent while a request or an answer is on its way, or
    /// between requests; in whole seconds. Handlers and idle live bodies are not limited.
    package var idleTimeout: Duration
    /// Renders the answer to a request that no handler sees. It may run on a socket thread, so
    /// it must not block, and its body must be bytes.
    package var failure: @Sendable (HTTPFailure) -> HTTPResponse
    /// Hears of every request after it ended. It runs on a socket thread and must not block.
    package var onComplete: @Sendable (HTTPExchange) -> Void

    package init(
      address: String = "127.0.0.1", port: UInt16 = 0, threads: Int = 2,
      bodyLimit: Int = 1 << 20, connectionLimit: Int = 4096,
      idleTimeout: Duration = .seconds(30),
      failure: @escaping @Sendable (HTTPFailure) -> HTTPResponse = Self.plainText,
      onComplete: @escaping @Sendable (HTTPExchange) -> Void = { _ in }
    ) {
      self.address = address
      self.port = port
      self.threads = threads
      self.bodyLimit = bodyLimit
      self.connectionLimit = connectionLimit
      self.idleTimeout = idleTimeout
      self.failure = failure
      self.onComplete = onComplete
    }

    /// The failure's sentence as plain text.
    package static let plainText: @Sendable (HTTPFailure) -> HTTPResponse = { failure in
      HTTPResponse(
        status: failure.status, headers: ["Content-Type": "text/plain; charset=utf-8"],
        body: .bytes(Array((failure.detail + "\n").utf8)))
    }
  }
}
