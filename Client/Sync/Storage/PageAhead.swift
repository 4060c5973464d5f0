import Dispatch
import FerryCompression
import FerryProtocol
import Synchronization

/// A page of a pull list as values.
struct DecodedPage: Sendable {
  let head: PageHead
  let notices: [Notice]
  /// The changes in order; a failure for one that violates the protocol.
  let changes: [Result<Change, UnreadableChange>]

  init(_ body: [UInt8], limits: Limits) throws(MalformedMessage) {
    notices = try PageReader.notices(of: body, limits: limits)
    let count = try PageReader.head(of: body).count
    var changes: [Result<Change, UnreadableChange>] = []
    // The number is the server's word until the changes are there.
    changes.reserveCapacity(min(count, body.count / 64))
    head = try body.withUnsafeBytes { buffer in
      Result { () throws(MalformedMessage) in
        try PageReader.read(buffer, limits: limits) {
          changes.append(.success($0))
        } unreadable: {
          changes.append(.failure($0))
        }
      }
    }.get()
    self.changes = changes
  }
}

/// Decodes the pages of a pull list on another thread, one page ahead of their application.
///
/// Decoding takes about as long as applying. At most two decoded pages are in memory: the
/// current page and the next. Small pages are decoded when they are due, without another thread.
struct PageAhead {
  /// A page as it is staged.
  enum Body: Sendable {
    case plain([UInt8])
    case compressed([UInt8])

    var count: Int {
      switch self {
      case .plain(let bytes), .compressed(let bytes): bytes.count
      }
    }
  }

  /// The fewest stored bytes of a page for which another thread is worth its while.
  private static let threadMin = 32 << 10

  private let limits: Limits
  private var next: Decoding?

  init(limits: Limits) { self.limits = limits }

  /// Begins to decode a page. Returns the page before it, if there is one.
  ///
  /// - Throws: ``MalformedMessage`` or ``CompressionError`` for the page before it.
  mutating func begin(_ body: Body) throws -> DecodedPage? {
    let previous = next
    next = Decoding(body, limits: limits, isAhead: body.count >= Self.threadMin)
    return try previous?.page()
  }

  /// Returns the last page.
  mutating func end() throws -> DecodedPage? {
    defer { next = nil }
    return try next?.page()
  }
}

/// The decoding of one page, here or on another thread.
private final class Decoding: Sendable {
  private let body: PageAhead.Body
  private let limits: Limits
  private let isAhead: Bool
  private let done = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<DecodedPage, any Error>?>(nil)

  init(_ body: PageAhead.Body, limits: Limits, isAhead: Bool) {
    (self.body, self.limits, self.isAhead) = (body, limits, isAhead)
    guard isAhead else { return }
    DispatchQueue.global(qos: .userInitiated).async { [self] in
      let decoded = Result { try decode() }
      result.withLock { $0 = decoded }
      done.signal()
    }
  }

  /// Returns the page, once. Waits until it is decoded.
  func page() throws -> DecodedPage {
    guard isAhead else { return try decode() }
    done.wait()
    return try result.withLock { result in
      defer { result = nil }
      return try (result ?? Result { try decode() }).get()
    }
  }

  private func decode() throws -> DecodedPage {
    switch body {
    case .plain(let bytes): return try DecodedPage(bytes, limits: limits)
    case .compressed(let bytes):
      let page = try ContentCoding.zstd.decompress(bytes, limit: limits.answerBytes)
      return try DecodedPage(page, limits: limits)
    }
  }
}
