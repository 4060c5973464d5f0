import FerryPlatform
import Glibc

extension HTTPServer {
  /// The configuration of a server.
  package struct Configuration: Sendable {
    /// `127.0.0.1`, `[::1]`, `0.0.0.0`, `::` (IPv4 as well), or any address of this machine.
    package var address: String
    /// 0 takes any free port.
    package var port: UInt16
    /// Threads to read and write sockets. They also begin the handlers of small contents, which go
    /// on elsewhere after their first wait.
    package var threads: Int
    /// Bytes of request content, before and after decoding.
    package var bodyLimit: Int
    /// Connections at once, live bodies included. In a full server the oldest connection without a
    /// complete request gives way to a new one. If there is none, new ones wait in the kernel's
    /// queue.
    package var connectionLimit: Int
    /// Connections beyond the limit. Each takes one request, which `admission` is asked about
    /// although it has no content.
    package var connectionReserve = 0
    /// Connections of one address, or of one IPv6 network of 64 bits; further ones are closed at
    /// once. Addresses of this machine have no limit: a proxy's clients share them. Each request
    /// in progress of a client behind a trusted proxy counts as a connection of the client.
    package var addressLimit: Int?
    /// The proxies whose clients count by their own addresses.
    package var proxies = TrustedProxies()
    /// The time for which a connection may be silent during a request or an answer, or between
    /// requests; in whole seconds. Handlers and idle live bodies are not limited.
    package var idleTimeout: Duration
    /// The limits of clients' slowness.
    package var pace = TransferPace()
    /// The limit of the memory for contents and answers.
    package var memory = MemoryBudget(limit: 256 << 20)
    /// Asked about each request with content when all headers are complete. It runs on a socket
    /// thread and must not block.
    package var admission: @Sendable (HTTPArrival) -> HTTPAdmission
    /// Returns the flow of a request's work: by default the client's address, the text. The request
    /// has no content yet; it is `nil` if no handler will see it. It runs on a socket thread and must
    /// not block.
    package var flow: @Sendable (HTTPRequest?, String) -> WorkFlow = { WorkFlow(user: $1) }
    /// Returns the executor of a flow: it decodes contents, runs handlers and compresses answers;
    /// `nil` for the shared pool.
    package var executor: (@Sendable (WorkFlow) -> any TaskExecutor)?
    /// Answers handed to the socket threads at once, which write them in any order. Further answers
    /// wait for turns of their users.
    package var answersAtOnce = 16
    /// Handlers in progress below which one with a small content begins on the socket's thread, which
    /// is faster. With more, each request waits for a turn in the executor: a socket's thread serves
    /// its connections in their order, and knows no users.
    package var immediateHandlers = 32
    /// Time since some moment; never goes back.
    package var clock: @Sendable () -> Duration = Self.monotonic
    /// True if a timer cuts off late clients.
    package var cutsOffLate = true
    /// Renders the answer to a request without a handler. It may run on a socket thread, so it must
    /// not block, and the body must be bytes. The text is the client's address.
    package var failure: @Sendable (HTTPFailure, String) -> HTTPResponse
    /// Returns each answer in the form to send, also those without a handler. The headers are those
    /// of the request. It may run on a socket thread and must not block.
    package var amend: @Sendable (HTTPResponse, HTTPHeaders) -> HTTPResponse = { answer, _ in
      answer
    }
    /// Called with every request after it ended. It runs on a socket thread and must not block.
    package var onComplete: @Sendable (HTTPExchange) -> Void

    package init(
      address: String = "127.0.0.1", port: UInt16 = 0, threads: Int = 2,
      bodyLimit: Int = 1 << 20, connectionLimit: Int = 4096,
      idleTimeout: Duration = .seconds(30),
      failure: @escaping @Sendable (HTTPFailure, String) -> HTTPResponse = Self.plainText,
      onComplete: @escaping @Sendable (HTTPExchange) -> Void = { _ in }
    ) {
      self.address = address
      self.port = port
      self.threads = threads
      self.bodyLimit = bodyLimit
      self.connectionLimit = connectionLimit
      self.idleTimeout = idleTimeout
      self.admission = { _ in .proceed(limit: bodyLimit) }
      self.failure = failure
      self.onComplete = onComplete
    }

    /// Returns the pace of an ordinary connection, or of a reserved one.
    func pace(onReserve: Bool) -> TransferPace {
      var pace = pace
      if onReserve { pace.headers = min(pace.headers, Self.reserveHeaders) }
      return pace
    }

    private static let reserveHeaders = Duration.seconds(2)

    /// This machine's clock.
    package static let monotonic: @Sendable () -> Duration = {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// The failure's sentence as plain text.
    package static let plainText: @Sendable (HTTPFailure, String) -> HTTPResponse = { failure, _ in
      HTTPResponse(
        status: failure.status, headers: ["Content-Type": "text/plain; charset=utf-8"],
        body: .bytes(Array((failure.detail + "\n").utf8)))
    }
  }

  /// The load of a server.
  package struct Load: Sendable, Equatable {
    /// Open connections.
    package var connections: Int
    /// Connections closed at once since the start, because their address had too many.
    package var refused: Int
    /// Connections cut off since the start, because their client was too slow.
    package var late: Int
    /// Connections without a complete request that gave way to new ones since the start.
    package var evicted: Int
    /// The memory of requests.
    package var memory: MemoryBudget.Counts

    package init(
      connections: Int = 0, refused: Int = 0, late: Int = 0, evicted: Int = 0,
      memory: MemoryBudget.Counts = MemoryBudget.Counts()
    ) {
      self.connections = connections
      self.refused = refused
      self.late = late
      self.evicted = evicted
      self.memory = memory
    }
  }
}
