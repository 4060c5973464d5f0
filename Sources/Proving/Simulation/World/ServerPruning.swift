import FerryConformance
import FerrySyncServer

/// The retention and the pruning of a world's server.
struct ServerPruning {
  /// The retention of every space; `nil` for the default of new spaces, which is longer than any
  /// world.
  let retention: Retention?
  let pace: Pruner.Pace

  /// The most rows deleted by one transaction: few, so a run takes several.
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
  /// Draws a short retention in one world of three. The server then prunes so soon that some
  /// devices come back too late. Those were away or cut off, are copies, or have files restored
  /// from a backup.
  mutating func drawRetention(seed: UInt64) {
    var random = SeededRandom(seed, "retention")
    guard random.chance(1, in: 3) else { return }
    retention = [1, 5, 20, 60][random.below(4)]
    pruneEvery = 1 + random.below(10)
    // A list of small pages takes minutes, and expires meanwhile: a device begins it some times.
    if pageChanges <= 5 { livenessSeconds = 3_000 }
  }
}
