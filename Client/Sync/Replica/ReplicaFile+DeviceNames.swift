import FerryProtocol

/// The requests about names at the end of a sync.
struct NameWork: Sendable, Equatable {
  /// The name to send, with the present identifier.
  var own: NamedDevice?
  /// Devices in conflicts with names possibly known to the server.
  var devices: [DeviceID] = []
}

/// The names of devices (SPEC.md §30).
extension ReplicaFile {
  var deviceNames: DeviceNameTable { DeviceNameTable(connection: connection) }

  /// Sets this device's name, in all spaces of the file.
  func setDeviceName(_ name: DeviceName?) throws {
    try connection.transaction {
      for file in spaces.all { try file.deviceNames.set(name) }
    }
  }

  /// Returns true if a sync must send the name.
  func hasUnsentName() throws -> Bool {
    try deviceNames.own().isToSend(as: identity().device, isKnown: packets.hasChain())
  }

  /// Stores the names in the pages of a round. Returns the resulting requests.
  ///
  /// - Parameter sends: true if the round sends; a pull does not send a name either.
  func nameWork(after shown: ShownNames?, sends: Bool) throws -> NameWork {
    let device = try identity().device
    let own = try shown.map(deviceNames.store) ?? deviceNames.own()
    let isKnown = shown?.device == device && shown?.isKnown == true
    var work = NameWork()
    if try sends && own.isToSend(as: device, isKnown: isKnown || packets.hasChain()) {
      work.own = NamedDevice(device, own.name)
    }
    // No device of the space has ever had a name.
    if own.changes > 0 { work.devices = try deviceNames.toAsk(limit: limits.devicesPerRequest) }
    return work
  }
}
