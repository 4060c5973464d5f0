import FerryPersistence
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
    if let planted = setting.planted, let connection = connection(of: device.ledgers[0]) {
      setting.dice.quietly { planted.plantInCopies(on: connection) }
    }
    copyPlaces = Set(places(of: "name GLOB 'ferry*_first_*'") ?? [])
    guard setting.dice.roll(.fillCrash, at: device.name) else { return }
    setting.trace.record(.crashed, device.name, "while it filled in its first list")
    // The next step reaches no file.
    setting.disk.kill(under: "/\(device.name)/")
    setting.scheduler.after(0) { [device, self] in
      if isAlive { device.crash(losingPower: false, restartAfter: 1_000_000) }
    }
  }

  /// Reports the exchange of a first list, after a sync: tables of the application have the places
  /// of their former copies in the file.
  func reportExchange() {
    guard !copyPlaces.isEmpty, let places = places(of: "name NOT GLOB 'ferry*'") else { return }
    let count = places.count(where: copyPlaces.contains)
    copyPlaces = []
    guard count > 0 else { return }
    setting.trace.record(.exchanged, device.name, "\(count) tables of its first list")
  }

  /// Returns the places of tables' b-trees in the file.
  private func places(of condition: String) -> [Int64]? {
    device.look(at: device.ledgers[0], isApart: false) {
      try $0.rows("SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND \(condition)") {
        $0.int64(0)
      }
    }
  }
}
