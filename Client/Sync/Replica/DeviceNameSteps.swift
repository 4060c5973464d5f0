import FerryProtocol

/// The requests about names at the end of a sync.
struct NameWork: Sendable, Equatable {
  /// The name to send, with the present identifier.
  var own: NamedDevice?
  /// Devices in conflicts with names possibly known to the server.
  var devices: [DeviceID] = []
}

/// The steps of names (SPEC.md §30): the driver of ``OwnName``.
struct DeviceNameSteps {
  let file: ReplicaFile

  private var names: DeviceNameTable { file.deviceNames }

  /// Sets this device's name, in all spaces of the file.
  func set(_ name: DeviceName?) throws {
    try file.connection.transaction {
      for file in file.spaces.all { try file.deviceNames.set(name) }
    }
  }

  /// Returns true if a sync must send the name.
  func hasUnsent() throws -> Bool {
    try names.own().isToSend(as: file.identity().device, isKnown: file.packets.hasChain())
  }

  /// Stores the names in the pages of a round. Returns the resulting requests.
  ///
  /// - Parameter sends: true if the round sends; a pull does not send a name either.
  func work(after shown: ShownNames?, sends: Bool) throws -> NameWork {
    let device = try file.identity().device
    let own = try shown.map(names.store) ?? names.own()
    let isKnown = shown?.device == device && shown?.isKnown == true
    var work = NameWork()
    if try sends && own.isToSend(as: device, isKnown: isKnown || file.packets.hasChain()) {
      work.own = NamedDevice(device, own.name)
    }
    // No device of the space has ever had a name.
    if own.changes > 0 { work.devices = try names.toAsk(limit: file.limits.devicesPerRequest) }
    return work
  }
}
