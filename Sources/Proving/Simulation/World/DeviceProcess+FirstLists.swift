import FerrySQLite
import FerrySyncClient

/// First lists that are filled in beside the tables, and processes that die meanwhile.
extension DeviceProcess {
  /// Small slices, so that the first lists of worlds have several, beside other calls. Without a
  /// pause: its length would depend on the machine. The process dies after a slice, also between
  /// the last one and the exchange of the tables.
  var firstLists: FirstListOptions {
    var options = FirstListOptions()
    (options.changesMin, options.sliceChanges, options.checkedRows) = (4, 3, 2)
    options.pause = { [self] _ in
      if isAlive { reportSlice() }
      return .zero
    }
    return options
  }

  private func reportSlice() {
    device.hasFilled = true
    setting.trace.record(.filled, device.name, "a slice of its first list")
    guard setting.dice.roll(.fillCrash, at: device.name) else { return }
    setting.trace.record(.crashed, device.name, "while it filled in its first list")
    // The next step reaches no file.
    setting.disk.kill(under: "/\(device.name)/")
    setting.scheduler.after(0) { [device, self] in
      if isAlive { device.crash(losingPower: false, restartAfter: 1_000_000) }
    }
  }
}
