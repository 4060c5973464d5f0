import FerryProtocol

/// The progress of a mission.
public struct MissionProgress: Sendable, Equatable {
  public var id: MissionID
  public var version: Int64
  /// The local bytes. The number never exceeds ``bytesTotal``. It goes back only if an item of a
  /// mission of the app's own becomes smaller or is cancelled.
  public var bytesDone: Int64
  /// The bytes of all items, as far as their sizes are known.
  public var bytesTotal: Int64
  /// True if the sizes of all items are known. They may not be for a mission of the app's own.
  public var isTotalKnown = true
  public var itemsDone: Int64
  public var items: Int64
  /// The bytes received over the network in this run.
  public var bytesFetched: Int64
  /// Bytes a second over the last seconds; `nil` while it is unknown.
  public var bytesPerSecond: Double?
  /// The time for the rest at this rate.
  public var timeLeft: Duration?
  /// The items under way, in the manifest's order.
  public var underWay: [ItemProgress] = []

  /// The progress from 0 to 1: of the bytes, or of the items while a size is unknown.
  public var fraction: Double {
    if !isTotalKnown { return Double(itemsDone) / Double(items) }
    return bytesTotal == 0 ? 1 : Double(bytesDone) / Double(bytesTotal)
  }
}

/// The progress of an item.
public struct ItemProgress: Sendable, Equatable {
  public var path: String
  public var bytesDone: Int64
  public var bytesTotal: Int64
}

/// Sums up the progress of a mission's items. It has no clock: the caller passes the time.
struct ProgressMeter: Sendable {
  private struct Item {
    var path: String
    var size: Int64
    /// The bytes of all items with this content.
    var weight: Int64
    var done: Int64 = 0
    var fetched: Int64 = 0
  }

  private let id: MissionID
  private let version: Int64
  private let total: Int64
  private let items: Int64
  private var itemsDone: Int64 = 0
  /// The bytes of complete items.
  private var done: Int64 = 0
  /// The highest progress reported so far.
  private var shown: Int64
  private var itemsShown: Int64
  /// The bytes fetched by ended items.
  private var fetched: Int64 = 0
  private var underWay: [Int: Item] = [:]
  private var meter = RateMeter()

  /// Creates a meter.
  ///
  /// - Parameters:
  ///   - bytesShown: The bytes reported by an earlier process.
  ///   - itemsShown: The items reported by an earlier process.
  init(_ manifest: MissionManifest, bytesShown: Int64 = 0, itemsShown: Int64 = 0) {
    shown = bytesShown
    self.itemsShown = itemsShown
    id = manifest.id
    version = manifest.version
    total = manifest.size
    items = Int64(manifest.items.count)
  }

  /// Begins an item. `sharers`: the number of items with this content, this one included.
  mutating func begin(_ place: Int, _ item: MissionItem, sharers: Int) {
    underWay[place] = Item(path: item.path, size: item.size, weight: Int64(sharers))
  }

  /// Stores the progress of an item's download. It may go back if a file must be fetched again; the
  /// reported progress does not.
  mutating func update(_ place: Int, _ progress: DownloadProgress, at now: Duration) {
    guard var item = underWay[place] else { return }
    item.done = min(max(progress.bytesDone, 0), item.size)
    item.fetched = max(item.fetched, progress.bytesFetched)
    underWay[place] = item
    mark(now)
  }

  /// Ends a failed attempt: the fetched bytes count, and the next one begins at 0.
  mutating func attemptEnded(_ place: Int) {
    fetched += underWay[place]?.fetched ?? 0
    underWay[place]?.fetched = 0
  }

  /// Records that an item's content is complete, and with it all items of the same content.
  mutating func finish(_ place: Int, at now: Duration) {
    guard let item = underWay.removeValue(forKey: place) else { return }
    done += item.size * item.weight
    fetched += item.fetched
    itemsDone += item.weight
    mark(now)
  }

  /// Returns the progress to report now.
  mutating func progress(at now: Duration) -> MissionProgress {
    let running = underWay.values.reduce(0) { $0 + $1.done * $1.weight }
    shown = min(total, max(shown, done + running))
    itemsShown = min(items, max(itemsShown, itemsDone))
    var progress = MissionProgress(
      id: id, version: version, bytesDone: shown, bytesTotal: total, itemsDone: itemsShown,
      items: items, bytesFetched: bytesFetched)
    progress.bytesPerSecond = meter.rate(bytesFetched, at: now)
    if let rate = progress.bytesPerSecond, rate > 0 {
      progress.timeLeft = .seconds(min(Double(total - shown) / rate, 1e9))
    }
    progress.underWay = underWay.sorted { $0.key < $1.key }.map {
      ItemProgress(path: $1.path, bytesDone: $1.done, bytesTotal: $1.size)
    }
    return progress
  }

  private var bytesFetched: Int64 { underWay.values.reduce(fetched) { $0 + $1.fetched } }

  private mutating func mark(_ now: Duration) { meter.mark(bytesFetched, at: now) }
}
