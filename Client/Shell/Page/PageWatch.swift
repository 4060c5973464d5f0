/// Decides whether pages work; pure. Each load of a page is followed until it confirms, fails or
/// ends (SPEC.md §33).
package struct PageWatch: Sendable {
  /// The time for a page to confirm that it works.
  package static let patience = Duration.seconds(10)
  /// If the pages of a new version vanish so often before they are ready, the version has crashed.
  static let vanishedMax = 2

  package enum Event: Sendable, Equatable {
    /// A page load began.
    case loaded(PageVersion)
    /// The page's script has opened the stream.
    case connected
    /// It works.
    case ready
    /// It failed.
    case failed(PageFailure)
    /// The user left it.
    case closed
    /// The page's stream ended without a word.
    case vanished
  }

  enum Effect: Sendable, Equatable {
    case confirm(page: Int, PageVersion)
    case fail(page: Int, PageVersion, PageFailure)
  }

  private struct Load {
    let version: PageVersion
    var deadline: Duration?
    var isConnected = false
    var isOver = false
  }

  private var loads: [Int: Load] = [:]
  /// Versions known to work on this device.
  private var good: Set<PageVersion> = []
  private var failed: Set<PageVersion> = []
  private var vanished: [PageVersion: Int] = [:]

  /// Handles an event of a page.
  ///
  /// - Parameter now: the time since any fixed moment.
  mutating func handle(_ event: Event, of page: Int, at now: Duration) -> [Effect] {
    var effects = expired(at: now)
    if case .loaded(let version) = event {
      loads[page] = Load(version: version, deadline: now + Self.patience)
      // A version shown again, such as the only one, gets another chance.
      failed.remove(version)
      return effects
    }
    guard var load = loads[page] else { return effects }
    switch event {
    case .loaded: break
    case .connected: load.isConnected = true
    case .ready:
      if load.deadline != nil, !load.isOver, !failed.contains(load.version) {
        effects.append(.confirm(page: page, load.version))
        good.insert(load.version)
        vanished[load.version] = nil
      }
      load.deadline = nil
    case .failed(let failure): effects += fail(page, &load, failure)
    case .closed:
      loads[page] = nil
      return effects
    case .vanished:
      if load.deadline != nil, !good.contains(load.version) {
        vanished[load.version, default: 0] += 1
        if vanished[load.version, default: 0] >= Self.vanishedMax {
          effects += fail(
            page, &load,
            PageFailure(.crashed, "its process ended \(Self.vanishedMax) times before it was ready")
          )
        }
      }
      load.deadline = nil
      // A web view may report the end of the newest page's process later.
      guard page == loads.keys.max() else {
        loads[page] = nil
        return effects
      }
    }
    loads[page] = load
    return effects
  }

  /// Fails the pages at the end of their time. A page that never opened a stream was left by the
  /// browser, and proves nothing.
  mutating func expired(at now: Duration) -> [Effect] {
    var effects: [Effect] = []
    for page in loads.keys.sorted() {
      guard var load = loads[page], let deadline = load.deadline, deadline <= now else { continue }
      load.deadline = nil
      if load.isConnected {
        let seconds = Self.patience.components.seconds
        effects += fail(
          page, &load, PageFailure(.silent, "it did not call ferry.ready() in \(seconds) s"))
      }
      loads[page] = load
    }
    return effects
  }

  /// The next time for a call of ``expired(at:)``.
  var nextDeadline: Duration? { loads.values.compactMap(\.deadline).min() }

  private mutating func fail(_ page: Int, _ load: inout Load, _ failure: PageFailure) -> [Effect] {
    load.deadline = nil
    guard !load.isOver else { return [] }
    load.isOver = true
    // Of several pages of one version, the first failure counts.
    guard failed.insert(load.version).inserted else { return [] }
    good.remove(load.version)
    return [.fail(page: page, load.version, failure)]
  }
}
