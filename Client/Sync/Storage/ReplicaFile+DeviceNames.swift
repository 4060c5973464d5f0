import FerryProtocol

/// The requests about names that a sync ends with.
struct NameWork: Sendable, Equatable {
  /// The name to send, with the present identifier.
  var own: NamedDevice?
  /// Devices in conflicts whose names the server may know.
  var devices: [DeviceID] = []
}

/// The names of devices (SPEC.md §30).
extension ReplicaFile {
  var deviceNames: DeviceNameTable { DeviceNameTable(connection: connection) }

  /// Gives this device a name, in all spaces of the file.
  func setDeviceName(_ name: DeviceName?) throws {
    try connection.transaction {
      for file in spaces.all { try file.deviceNames.set(name) }
    }
  }

  /// Whether a sync has to send the name.
  func hasUnsentName() throws -> Bool {
    try deviceNames.own().isToSend(as: identity().device, isKnown: packets.hasChain())
  }

  /// Notes the names that the pages of a round show. Returns the requests that follow.
  ///
  /// - Parameter sends: whether the round sends; a pull does not send a name either.
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
