/// Decides whether pages work; pure. Each load of a page is followed until it confirms, fails or
/// ends (SPEC.md §33).
package struct PageWatch: Sendable {
  /// The time in which a page has to report that it works.
  package static let patience = Duration.seconds(10)
  /// A new version whose pages vanish so often before they are ready has crashed.
  static let vanishedMax = 2

  package enum Event: Sendable, Equatable {
    /// A page load began.
    case loaded(PageVersion)
    /// Its script has opened its stream.
    case connected
    /// It works.
    case ready
    /// It failed.
    case failed(PageFailure)
    /// The user left it.
    case closed
    /// Its stream ended without a word.
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
  /// Versions that have worked on this device.
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
      // A version that is shown again, such as the only one, gets another chance.
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
      // A web view may report the end of the newest page's process after that.
      guard page == loads.keys.max() else {
        loads[page] = nil
        return effects
      }
    }
    loads[page] = load
    return effects
  }

  /// Fails the pages whose time is over. A page that never opened its stream was left by its
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

  /// The next time at which ``expired(at:)`` has to be called.
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
