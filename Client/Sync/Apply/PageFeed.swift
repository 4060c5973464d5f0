import Dispatch
import FerryCompression
import FerryProtocol
import Synchronization

/// A page of a pull list as it is staged.
enum StoredPage: Sendable {
  case plain([UInt8])
  case compressed([UInt8])

  /// - Parameter bytes: the stored bytes. No compressed page begins as JSON does.
  init(_ bytes: [UInt8]) {
    self = bytes.first == UInt8(ascii: "{") ? .plain(bytes) : .compressed(bytes)
  }

  /// The stored bytes.
  var count: Int {
    switch self {
    case .plain(let bytes), .compressed(let bytes): bytes.count
    }
  }

  /// Returns the page as the server sent it.
  func body(_ limits: Limits) throws -> [UInt8] {
    switch self {
    case .plain(let bytes): return bytes
    case .compressed(let bytes):
      guard let coding = ContentCoding(of: bytes) else {
        throw CompressionError.failed("a stored page has a compression that this build lacks")
      }
      return try coding.decompress(bytes, limit: limits.answerBytes)
    }
  }
}

/// Some of a page's changes, in order; a failure for a change that violates the protocol.
typealias ChangeBatch = [Result<Change, UnreadableChange>]

/// The changes of one page, batch by batch, while another thread decodes them.
///
/// Without another reference to the feed, the decoding ends.
final class PageFeed {
  /// The fewest bytes of a page that make another thread worthwhile. A shorter page may have more
  /// content after decompression.
  private static let threadMin = 32 << 10

  /// The head and the notices of a page; they come before the changes.
  struct Opening: Sendable {
    let head: SequenceNumber
    let notices: [Notice]
  }

  private let channel = FeedChannel()
  private let opening: Opening?
  private var small: ChangeBatch?

  /// Begins to decode a page.
  ///
  /// - Throws: ``MalformedMessage`` or ``CompressionError``, at once for a small page. A large one
  ///   reports them where it ends.
  init(_ page: StoredPage, limits: Limits) throws {
    let page = page.count < Self.threadMin ? StoredPage.plain(try page.body(limits)) : page
    if page.count >= Self.threadMin {
      opening = nil
      DispatchQueue.global(qos: .userInitiated).async { [channel] in
        channel.end(Result { try Self.decode(page, limits, into: channel) })
      }
      return
    }
    let body = try page.body(limits)
    opening = try Self.opening(of: body, limits)
    var changes: ChangeBatch = []
    try Self.read(body, limits) { changes.append($0) }
    small = changes
  }

  deinit { channel.cancel() }

  /// Returns the head and the notices, once. Waits until they are decoded.
  func open() throws -> Opening {
    if let opening { return opening }
    guard case .opening(let opening)? = try channel.receive() else {
      throw malformed("a page without a head")
    }
    return opening
  }

  /// Returns the next changes; `nil` after the last ones. Waits until they are decoded.
  func next() throws -> ChangeBatch? {
    if opening != nil {
      defer { small = nil }
      return small
    }
    while let part = try channel.receive() {
      if case .changes(let batch) = part { return batch }
    }
    return nil
  }

  // MARK: Decoding

  private static func opening(of body: [UInt8], _ limits: Limits) throws -> Opening {
    Opening(
      head: try PageReader.head(of: body).head,
      notices: try PageReader.notices(of: body, limits: limits))
  }

  private static func decode(
    _ page: StoredPage, _ limits: Limits, into channel: FeedChannel
  ) throws {
    let body = try page.body(limits)
    try channel.send(.opening(opening(of: body, limits)))
    var batch: ChangeBatch = []
    var weight = 0
    try read(body, limits) { (change) throws(MalformedMessage) in
      batch.append(change)
      weight += 1
      if case .success(let change) = change { weight += change.state.columns.count }
      guard weight >= FeedChannel.batchWeight else { return }
      try channel.send(.changes(batch))
      (batch, weight) = ([], 0)
    }
    if !batch.isEmpty { try channel.send(.changes(batch)) }
  }

  private static func read(
    _ body: [UInt8], _ limits: Limits,
    _ each: (Result<Change, UnreadableChange>) throws(MalformedMessage) -> Void
  ) throws {
    _ = try body.withUnsafeBytes { buffer in
      Result { () throws(MalformedMessage) in
        try PageReader.read(buffer, limits: limits) { (change) throws(MalformedMessage) in
          try each(.success(change))
        } unreadable: { (change) throws(MalformedMessage) in
          try each(.failure(change))
        }
      }
    }.get()
  }
}

/// Hands decoded parts of a page to one taker, in order. A few of them wait at most.
private final class FeedChannel: Sendable {
  /// The changes of a batch with their columns: at least so many, and no more than one change
  /// beyond.
  static let batchWeight = 2_000
  /// The most parts that may wait.
  private static let partsMax = 3

  enum Part: Sendable {
    case opening(PageFeed.Opening)
    case changes(ChangeBatch)
  }

  private struct State {
    var parts: [Part] = []
    var end: Result<Void, any Error>?
    var isCancelled = false
  }

  private let state = Mutex(State())
  // From 0 on: a semaphore must not end below the first value.
  private let room = DispatchSemaphore(value: 0)
  private let filled = DispatchSemaphore(value: 0)

  init() {
    for _ in 0..<Self.partsMax { room.signal() }
  }

  /// Adds a part; waits for room.
  ///
  /// - Throws: if nobody reads the parts any more.
  func send(_ part: Part) throws(MalformedMessage) {
    room.wait()
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.parts.append(part) }
      return state.isCancelled
    }
    if isCancelled { throw malformed("the page is not needed") }
    filled.signal()
  }

  /// Ends the page, perhaps with an error.
  func end(_ result: Result<Void, any Error>) {
    state.withLock { $0.end = result }
    filled.signal()
  }

  /// Returns the next part; `nil` at the end, where an error of the page is thrown.
  func receive() throws -> Part? {
    filled.wait()
    let (part, end) = state.withLock { state in
      (state.parts.isEmpty ? nil : state.parts.removeFirst(), state.end)
    }
    if let part {
      room.signal()
      return part
    }
    // The end can be asked for again.
    filled.signal()
    try end?.get()
    return nil
  }

  /// Cancels the decoding.
  func cancel() {
    state.withLock { state in
      state.isCancelled = true
      state.parts = []
    }
    room.signal()
  }
}

private func malformed(_ reason: String) -> MalformedMessage {
  JSONReader(UnsafeRawBufferPointer(start: nil, count: 0)).malformed(reason)
}
