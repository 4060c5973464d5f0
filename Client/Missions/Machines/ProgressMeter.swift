import FerryProtocol

/// How far a mission is.
public struct MissionProgress: Sendable, Equatable {
  public var id: MissionID
  public var version: Int64
  /// Bytes that are there; it never goes back and never exceeds ``bytesTotal``.
  public var bytesDone: Int64
  public var bytesTotal: Int64
  public var itemsDone: Int64
  public var items: Int64
  /// Bytes that came over the network in this run.
  public var bytesFetched: Int64
  /// Bytes a second over the last seconds; `nil` as long as nothing can be said.
  public var bytesPerSecond: Double?
  /// How long the rest takes at this rate.
  public var timeLeft: Duration?
  /// Items that are being fetched, in the manifest's order.
  public var underWay: [ItemProgress] = []

  /// From 0 to 1.
  public var fraction: Double {
    bytesTotal == 0 ? 1 : Double(bytesDone) / Double(bytesTotal)
  }
}

/// How far an item is.
public struct ItemProgress: Sendable, Equatable {
  public var path: String
  public var bytesDone: Int64
  public var bytesTotal: Int64
}

/// Sums up what the items of a mission tell, and knows no clock: the time is given.
struct ProgressMeter: Sendable {
  private struct Item {
    var path: String
    var size: Int64
    /// Bytes of all items with this content.
    var weight: Int64
    var done: Int64 = 0
    var fetched: Int64 = 0
  }

  private struct Mark {
    var at: Duration
    var fetched: Int64
  }

  /// What a rate is measured over.
  private static let window: Duration = .seconds(5)
  /// Below this nothing is said.
  private static let windowMin: Duration = .milliseconds(500)

  private let id: MissionID
  private let version: Int64
  private let total: Int64
  private let items: Int64
  private var itemsDone: Int64 = 0
  /// Bytes of items that are there.
  private var done: Int64 = 0
  /// The most that was ever told.
  private var shown: Int64
  private var itemsShown: Int64
  /// Bytes that ended items fetched.
  private var fetched: Int64 = 0
  private var underWay: [Int: Item] = [:]
  private var marks: [Mark] = []

  /// - Parameters:
  ///   - bytesShown: What an earlier process has told already.
  ///   - itemsShown: The same of items.
  init(_ manifest: MissionManifest, bytesShown: Int64 = 0, itemsShown: Int64 = 0) {
    shown = bytesShown
    self.itemsShown = itemsShown
    id = manifest.id
    version = manifest.version
    total = manifest.size
    items = Int64(manifest.items.count)
  }

  /// An item begins. `sharers`: how many items its content serves, itself included.
  mutating func begin(_ place: Int, _ item: MissionItem, sharers: Int) {
    underWay[place] = Item(path: item.path, size: item.size, weight: Int64(sharers))
  }

  /// What an item's download tells. It may go back, where a file has to be fetched anew; what is
  /// shown does not.
  mutating func update(_ place: Int, _ progress: DownloadProgress, at now: Duration) {
    guard var item = underWay[place] else { return }
    item.done = min(max(progress.bytesDone, 0), item.size)
    item.fetched = max(item.fetched, progress.bytesFetched)
    underWay[place] = item
    mark(now)
  }

  /// An attempt has ended without success: what it fetched counts, and the next one begins at 0.
  mutating func attemptEnded(_ place: Int) {
    fetched += underWay[place]?.fetched ?? 0
    underWay[place]?.fetched = 0
  }

  /// An item's content is there, and with it all items that have the same.
  mutating func finish(_ place: Int, at now: Duration) {
    guard let item = underWay.removeValue(forKey: place) else { return }
    done += item.size * item.weight
    fetched += item.fetched
    itemsDone += item.weight
    mark(now)
  }

  /// What is to be told now.
  mutating func progress(at now: Duration) -> MissionProgress {
    let running = underWay.values.reduce(0) { $0 + $1.done * $1.weight }
    shown = min(total, max(shown, done + running))
    itemsShown = min(items, max(itemsShown, itemsDone))
    var progress = MissionProgress(
      id: id, version: version, bytesDone: shown, bytesTotal: total, itemsDone: itemsShown,
      items: items, bytesFetched: bytesFetched)
    progress.bytesPerSecond = rate(at: now)
    if let rate = progress.bytesPerSecond, rate > 0 {
      progress.timeLeft = .seconds(min(Double(total - shown) / rate, 1e9))
    }
    progress.underWay = underWay.sorted { $0.key < $1.key }.map {
      ItemProgress(path: $1.path, bytesDone: $1.done, bytesTotal: $1.size)
    }
    return progress
  }

  private var bytesFetched: Int64 { underWay.values.reduce(fetched) { $0 + $1.fetched } }

  /// A mark each tenth of a second at most, as far back as the window reaches.
  private mutating func mark(_ now: Duration) {
    if let last = marks.last, now - last.at < .milliseconds(100) { return }
    marks.append(Mark(at: now, fetched: bytesFetched))
    while marks.count > 2, now - marks[1].at >= Self.window { marks.removeFirst() }
  }

  private func rate(at now: Duration) -> Double? {
    guard let first = marks.first, now - first.at >= Self.windowMin else { return nil }
    return Double(bytesFetched - first.fetched) / ((now - first.at) / .seconds(1))
  }
}
