import Synchronization

/// One load of a page: version, secret, stream and live queries.
final class Page: Sendable {
  /// The most live queries of a page at once.
  static let watchesMax = 64
  /// The most calls of a page at once.
  static let callsMax = 64

  /// The number in the page's paths.
  let number: Int
  let version: PageVersion
  /// The first document of the load.
  let start: BundlePath
  let secret = Secret()
  let files: PageFiles
  /// The path before all addresses of the page, with a slash at the end.
  let base: String

  private struct State {
    var isEntryServed = false
    /// True if the page must load again, since its version has failed.
    var isReplaced = false
    var channel: LineChannel?
    var watches: [Int64: Task<Void, Never>] = [:]
    var calls = 0
    var isOver = false
  }

  private let state = Mutex(State())

  init(number: Int, version: PageVersion, start: BundlePath, token: Secret) {
    self.number = number
    self.version = version
    self.start = start
    base = "/\(token.text)/\(number)/"
    files = PageFiles(prefix: base + "-/files/")
  }

  /// Returns true if the entry document is served for the first time. Another request for it is
  /// another load of the page.
  func isFirstEntry() -> Bool {
    state.withLock { state in
      defer { state.isEntryServed = true }
      return !state.isEntryServed
    }
  }

  /// Opens the page's stream; `nil` if the page is over. A second stream replaces the first one.
  func open() -> LineChannel? {
    let channel = LineChannel()
    channel.send(BridgeLine.hello)
    let former = state.withLock { state -> LineChannel?? in
      if state.isOver { return nil }
      if state.isReplaced { channel.send(BridgeLine.reload) }
      defer { state.channel = channel }
      return .some(state.channel)
    }
    guard let former else { return nil }
    former?.finish()
    return channel
  }

  /// Makes the page load again. A browser may report a violation before the page has a stream; then
  /// the first lines of the stream carry the request.
  func replace() {
    let channel = state.withLock { state in
      state.isReplaced = true
      return state.channel
    }
    channel?.send(BridgeLine.reload)
  }

  /// True if the page must load again, since its version has failed and another one is shown now.
  var isReplaced: Bool { state.withLock { $0.isReplaced } }

  /// Returns true if a channel is the page's stream.
  func has(_ channel: LineChannel) -> Bool { state.withLock { $0.channel === channel } }

  /// Begins a call; returns whether the page may have one more.
  func beginCall() -> Bool {
    state.withLock { state in
      guard state.calls < Self.callsMax, !state.isOver else { return false }
      state.calls += 1
      return true
    }
  }

  func endCall() { state.withLock { $0.calls -= 1 } }

  /// Begins a live query.
  ///
  /// - Throws: `too_many`, `bad_request` for a number in use, `page_over` without a stream.
  func watch(
    _ number: Int64, _ work: @escaping @Sendable (LineChannel) async -> Void
  ) throws(ServiceError) {
    let fault = state.withLock { state -> ServiceError? in
      guard let channel = state.channel, !state.isOver else {
        return ServiceError("page_over", "the page has no stream")
      }
      guard state.watches[number] == nil else {
        return .badRequest("the number of the live query is in use")
      }
      guard state.watches.count < Self.watchesMax else {
        return ServiceError("too_many", "a page has at most \(Self.watchesMax) live queries")
      }
      state.watches[number] = Task { [weak self] in
        await work(channel)
        _ = self?.state.withLock { $0.watches.removeValue(forKey: number) }
      }
      return nil
    }
    if let fault { throw fault }
  }

  /// Ends a live query.
  func cancel(_ number: Int64) {
    let (task, channel) = state.withLock { ($0.watches.removeValue(forKey: number), $0.channel) }
    task?.cancel()
    channel?.drop(watch: number)
  }

  /// Ends the page: live queries, stream and file addresses.
  func end() {
    let (watches, channel) = state.withLock { state in
      defer {
        state.watches = [:]
        state.isOver = true
      }
      return (Array(state.watches.values), state.channel)
    }
    for watch in watches { watch.cancel() }
    channel?.finish()
    files.close()
  }
}
