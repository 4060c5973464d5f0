import FerryProtocol
import Synchronization

/// Answers the requests of one shell: pages, files and calls.
final class ShellCore: LoopbackHandler {
  /// The most open pages at once; a further one ends the oldest.
  static let pagesMax = 16
  /// The time for the report of a left page after the end of its stream.
  static let farewell = Duration.milliseconds(500)
  /// The most unused addresses.
  static let openingsMax = 32

  let gate: RequestGate
  let source: any BundleSource
  let services: ServiceRegistry
  let log: @Sendable (ShellEvent) -> Void
  private let surroundings: ShellSurroundings
  private let openPages = OpenPages()
  private let follower: PageFollower

  /// The pages and unused addresses.
  private final class OpenPages: Sendable {
    struct State {
      var openings: [Secret] = []
      var pages: [Int: Page] = [:]
      var next = 0
    }

    let state = Mutex(State())

    /// Reloads all pages of a version.
    func reload(_ version: PageVersion) {
      let pages = state.withLock { $0.pages.values.filter { $0.version == version } }
      for page in pages { page.replace() }
    }
  }

  init(
    _ port: UInt16, _ source: any BundleSource, _ services: ServiceRegistry,
    _ log: @escaping @Sendable (ShellEvent) -> Void, _ surroundings: ShellSurroundings
  ) {
    gate = RequestGate(authority: "127.0.0.1:\(port)", token: Secret(), cookie: Secret())
    (self.source, self.services, self.log) = (source, services, log)
    self.surroundings = surroundings
    follower = PageFollower(source, surroundings, log: log) { [openPages] in openPages.reload($0) }
  }

  func makeAddress() -> String {
    let opening = Secret()
    openPages.state.withLock { state in
      state.openings.append(opening)
      if state.openings.count > Self.openingsMax { state.openings.removeFirst() }
    }
    return "http://\(gate.authority)/-/open/\(opening.text)"
  }

  func stop() {
    let pages = openPages.state.withLock { state in
      defer { state.pages = [:] }
      return Array(state.pages.values)
    }
    for page in pages { page.end() }
    Task { [source] in for page in pages { await source.left(page.version) } }
  }

  // MARK: Requests

  func admit(_ head: RequestHead) -> Admission {
    do throws(RequestGate.Refusal) {
      let route = try gate.route(head)
      guard head.contentLength <= Self.bodyBytesMax(route) else {
        throw RequestGate.Refusal(status: 413, reason: "a message that is too large")
      }
      if case .call(let number, _, let secret) = route {
        guard let page = page(number), page.secret.isEqual(to: secret) else {
          throw RequestGate.Refusal(status: 403, reason: "another secret")
        }
      }
      return .accepted
    } catch {
      log(.refused(path: String(head.target.prefix(80)), reason: error.reason))
      return .refused(status: error.status)
    }
  }

  private static func bodyBytesMax(_ route: RequestGate.Route) -> Int {
    switch route {
    case .call(_, .upload, _): BridgeRequest.uploadBytesMax
    case .call: BridgeRequest.bytesMax
    case .report: 64 << 10
    default: 0
    }
  }

  func respond(to head: RequestHead, _ body: [UInt8]) async -> ShellResponse {
    guard let route = try? gate.route(head) else { return .empty(403) }
    switch route {
    case .open(let text): return open(text)
    case .begin: return await begin(at: nil)
    case .file(let number, let path): return await file(path, ofPage: number, head)
    case .script(let number):
      guard page(number) != nil else { return .empty(404) }
      return .bytes(200, PackageResources.ferry_js, type: "text/javascript; charset=utf-8")
    case .content(let number, let link):
      guard let content = page(number)?.files.content(link: link) else { return .empty(404) }
      return .content(content, range: head["range"])
    case .report(let number):
      if let failure = BridgeRequest.report(body) { await handle(.failed(failure), of: number) }
      return .empty(204)
    case .icon: return .empty(204)
    case .call(let number, let call, _):
      guard let page = page(number) else { return .empty(403) }
      return await answer(call, of: page, head, body)
    }
  }

  private func open(_ text: String) -> ShellResponse {
    let isKnown = openPages.state.withLock { state in
      guard let place = state.openings.firstIndex(where: { $0.isEqual(to: text) }) else {
        return false
      }
      state.openings.remove(at: place)
      return true
    }
    guard isKnown else { return ShellDocument.used.response }
    let root = "/\(gate.token.text)/"
    var response = ShellDocument.forwarding(to: root).response
    let cookie = "\(RequestGate.cookieName)=\(gate.cookie.text)"
    // Cookies are not kept apart by ports: the path keeps it from other servers of this machine.
    response.fields.append(("Set-Cookie", "\(cookie); Path=\(root); HttpOnly; SameSite=Strict"))
    return response
  }

  // MARK: Pages

  func page(_ number: Int) -> Page? { openPages.state.withLock { $0.pages[number] } }

  /// Begins a load with the current version.
  private func begin(at path: BundlePath?) async -> ShellResponse {
    let (version, start): (PageVersion, BundlePath)
    do throws(BundleSourceError) {
      (version, start) = try await load(path)
    } catch {
      log(.unavailable(error))
      return ShellDocument.unavailable(error, retry: "/\(gate.token.text)/").response
    }
    let (page, oldest) = openPages.state.withLock { state in
      state.next += 1
      let page = Page(number: state.next, version: version, start: start, token: gate.token)
      state.pages[state.next] = page
      let oldest = state.pages.count > Self.pagesMax ? state.pages.keys.min() : nil
      return (page, oldest)
    }
    if let oldest { await end(oldest, .closed) }
    log(.loaded(version))
    var response = ShellResponse.empty(303)
    response.fields.append(("Location", page.base + start.encoded))
    return response
  }

  /// Loads the version for a page load, and its first document.
  private func load(
    _ path: BundlePath?
  ) async throws(BundleSourceError) -> (PageVersion, BundlePath) {
    let version = try await source.next()
    guard let path else { return (version, version.entry) }
    do throws(BundleSourceError) {
      return (version, try await source.file(path, of: version) == nil ? version.entry : path)
    } catch {
      await source.left(version)
      throw error
    }
  }

  private func file(
    _ path: String, ofPage number: Int, _ head: RequestHead
  ) async -> ShellResponse {
    guard let path = BundlePath(path) else { return .empty(404) }
    let page = page(number)
    let isDocument = Self.isNavigation(path, head) && (path.isDocument || path == page?.start)
    guard let page else {
      return isDocument ? await begin(at: path) : .empty(404)
    }
    if isDocument {
      guard path == page.start, head.method == .get, page.isFirstEntry() else {
        return await begin(at: path)
      }
      return await entry(of: page)
    }
    do {
      guard let content = try await source.file(path, of: page.version) else { return .empty(404) }
      var response = ShellResponse.content(content, range: head["range"], isOfBundle: true)
      response.fields.append(ContentPolicy.field(report: page.base + "-/report"))
      return response
    } catch {
      return .empty(404)
    }
  }

  /// Returns true if a request is a navigation. Browsers mark it; for others, documents count as
  /// one. A browser also marks a link to a picture or a PDF; these are served like any other file.
  private static func isNavigation(_ path: BundlePath, _ head: RequestHead) -> Bool {
    head["sec-fetch-mode"].map { $0 == "navigate" } ?? path.isDocument
  }

  private func entry(of page: Page) async -> ShellResponse {
    do {
      guard let content = try await source.file(page.start, of: page.version) else {
        return await fail(page, "its document does not exist")
      }
      guard content.size <= EntryPage.bytesMax else {
        return await fail(page, "its document has more than \(EntryPage.bytesMax) bytes")
      }
      let document = try await content.readAll()
      await handle(.loaded(page.version), of: page.number)
      let injected = EntryPage.injected(document, secret: page.secret, base: page.base)
      var response = ShellResponse.bytes(200, injected, type: "text/html; charset=utf-8")
      response.fields.append(ContentPolicy.field(report: page.base + "-/report"))
      return response
    } catch {
      return await fail(page, "its document cannot be read: \(error)")
    }
  }

  /// Fails the version of a page without a document to show. If another version replaces it, the
  /// load begins again with the new one. Each such failure leaves one version fewer.
  private func fail(_ page: Page, _ reason: String) async -> ShellResponse {
    await handle(.loaded(page.version), of: page.number)
    await handle(.failed(PageFailure(.crashed, reason)), of: page.number)
    return page.isReplaced ? await begin(at: nil) : .empty(404)
  }

  /// Ends a page.
  func end(_ number: Int, _ event: PageWatch.Event) async {
    let page = openPages.state.withLock { $0.pages.removeValue(forKey: number) }
    page?.end()
    await handle(event, of: number)
    if let page { await source.left(page.version) }
  }

  func ended(_ channel: LineChannel) {
    let page = openPages.state.withLock { state in state.pages.values.first { $0.has(channel) } }
    guard let page else { return }
    Task {
      // When the user leaves a page, the page reports this on another connection.
      try await surroundings.sleep(Self.farewell)
      guard self.page(page.number) != nil else { return }
      await end(page.number, .vanished)
    }
  }

  func reportCrash(_ detail: String) async {
    // The page's stream may have ended before this.
    await handle(.failed(PageFailure(.crashed, detail)), of: openPages.state.withLock { $0.next })
  }

  /// Handles an event of a page.
  func handle(_ event: PageWatch.Event, of page: Int) async {
    await follower.handle(event, of: page)
  }
}
