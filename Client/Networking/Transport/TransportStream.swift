/// An answer with a body that is still arriving.
public struct TransportStream: Sendable {
  /// The status code.
  public let status: Int
  /// The fields as received.
  public let headers: TransportHeaders
  /// The body, decoded from gzip or zstd.
  public let body: TransportBody

  /// Creates an answer, also for other transports.
  public init(status: Int, headers: TransportHeaders = [:], body: TransportBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// A body in parts of any size, for one consumer and one pass.
///
/// A slow consumer slows the sender down. Leaving the loop, dropping the body or cancelling the
/// consuming task ends the transfer at once.
public struct TransportBody: AsyncSequence, Sendable {
  /// A part of the body, never empty.
  public typealias Element = [UInt8]
  /// The error at an early end of a body.
  public typealias Failure = TransportError
  /// Returns the next part, or `nil` after the last.
  public typealias Next = @Sendable () async throws(TransportError) -> [UInt8]?

  private let source: Source

  /// Creates a body from two closures.
  ///
  /// - Parameters:
  ///   - next: called by one consumer at a time.
  ///   - cancel: called when the consumer leaves, at the end as well; may be called repeatedly.
  public init(next: @escaping Next, cancel: @escaping @Sendable () -> Void) {
    source = Source(next: next, cancel: cancel)
  }

  /// Ends the transfer now; a waiting consumer gets kind `cancelled`.
  public func cancel() { source.cancel() }

  /// Returns the same body, with reports of the parts and the end while the consumer reads it.
  ///
  /// - Parameters:
  ///   - part: called with the bytes of each part.
  ///   - end: called at the end, after a failure and when the consumer leaves; possibly repeatedly.
  package func observed(
    part: @escaping @Sendable (Int) -> Void, end: @escaping @Sendable (TransportError?) -> Void
  ) -> TransportBody {
    let source = source
    return TransportBody(
      next: { () async throws(TransportError) -> [UInt8]? in
        do throws(TransportError) {
          let next = try await source.next()
          if let next { part(next.count) } else { end(nil) }
          return next
        } catch {
          end(error)
          throw error
        }
      },
      cancel: {
        source.cancel()
        end(TransportError(.cancelled, "the response has no reader any more"))
      })
  }

  /// Returns the one pass over the body; releasing the iterator ends the transfer.
  public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  /// One pass over the body.
  public struct Iterator: AsyncIteratorProtocol {
    private let lifetime: Lifetime

    fileprivate init(source: Source) { lifetime = Lifetime(source: source) }

    /// Returns the next part, or `nil` after the last.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(TransportError) -> [UInt8]? {
      try await lifetime.source.next()
    }
  }

  /// Ends the transfer when the body is dropped, consumed or not.
  fileprivate final class Source: Sendable {
    let next: Next
    let cancel: @Sendable () -> Void

    init(next: @escaping Next, cancel: @escaping @Sendable () -> Void) {
      self.next = next
      self.cancel = cancel
    }

    deinit { cancel() }
  }

  /// Ends the transfer when the loop over the body is left while the body is still held.
  private final class Lifetime: Sendable {
    let source: Source

    init(source: Source) { self.source = source }

    deinit { source.cancel() }
  }
}
