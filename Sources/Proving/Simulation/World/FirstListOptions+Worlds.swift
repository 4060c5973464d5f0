import FerrySyncClient

extension FirstListOptions {
  /// Small slices, so that the first lists of worlds have several: without a pause, since a world has no
  /// process that waits while another one runs.
  static var inWorlds: FirstListOptions {
    var options = FirstListOptions()
    (options.changesMin, options.sliceChanges) = (4, 3)
    options.run = { try $0() }
    return options
  }
}
