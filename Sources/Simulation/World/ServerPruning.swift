import Conformance
import SyncServer

/// How the server of a world forgets its history.
struct ServerPruning {
  /// Of every space; `nil` for what new spaces have, which no world lives to see the end of.
  let retention: Retention?
  let pace: Pruner.Pace

  /// Rows that one transaction deletes at most: few, so that a run takes several.
  private static let rows = 40

  init(_ options: WorldOptions) {
    let standard = Pruner.Pace.standard
    retention =
      options.retention > 0 ? Retention(milliseconds: Int64(options.retention) * 1_000) : nil
    pace = Pruner.Pace(
      interval: .seconds(options.pruneEvery), pause: standard.pause,
      rows: retention == nil ? standard.rows : Self.rows)
  }
}

extension WorldOptions {
  /// In one world of three the server forgets so soon that devices come back too late: those that
  /// were away or cut off, copies, and files that were set back.
  mutating func drawRetention(seed: UInt64) {
    var random = SeededRandom(seed, "retention")
    guard random.chance(1, in: 3) else { return }
    retention = [1, 5, 20, 60][random.below(4)]
    pruneEvery = 1 + random.below(10)
  }
}
