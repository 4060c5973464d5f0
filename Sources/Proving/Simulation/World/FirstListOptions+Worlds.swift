import FerrySyncClient

extension FirstListOptions {
  /// Small slices, so that the first lists of worlds have several, beside other calls. Without a pause: its
  /// length would depend on the machine.
  static var inWorlds: FirstListOptions {
    var options = FirstListOptions()
    (options.changesMin, options.sliceChanges) = (4, 3)
    options.checkedRows = 2
    options.pause = { _ in .zero }
    return options
  }
}
