import FerryProtocol

extension DeviceName {
  /// Reads a name from a store; `nil` if it is none.
  init?(stored text: String?) {
    guard let text, let name = try? DeviceName(checking: text) else { return nil }
    self = name
  }
}

// The names and owners of devices in both stores (SPEC.md §30). A name is stored with its device:
// a principal's quota of devices bounds the names, and deleting a device deletes its name.
extension SyncStore {
  /// Sets the name of a principal's device, or removes it with `nil`. A changed name raises the
  /// space's number of name changes.
  ///
  /// - Returns: `true` if the device belongs to the principal; if not, nothing changes.
  package func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool {
    try await plain(.writing) { connection in
      try connection.together {
        // The space's lock comes before those of its devices, as in all writes.
        try connection.lock(space)
        guard let known = try connection.identities(of: [device], in: space).first,
          known.principal == principal.id
        else { return false }
        if known.name == name { return true }
        try connection.run(
          DeviceQueries.setName, [.text(name?.text), .integer(space), .uuid(device.value)])
        try connection.run(DeviceQueries.countChange, [.integer(space)])
        return true
      }
    }
  }

  /// Returns the devices with a name, in the order of `devices`.
  package func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice] {
    try await plain(.pulling) { connection in
      try connection.identities(of: devices, in: space).compactMap { known in
        known.name.map { NamedDevice(known.device, $0) }
      }
    }
  }

  /// Returns the devices known in the space.
  package func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [DeviceIdentity] {
    try await plain(.reading) { try $0.identities(of: devices, in: space) }
  }
}

extension PlainConnection {
  /// Returns the owners and names of those devices that sent packets, in the order of `devices`.
  func identities(of devices: [DeviceID], in space: Int64) throws -> [DeviceIdentity] {
    try rows(
      DeviceQueries.identity, [.integer(space)], of: devices.map { [.uuid($0.value)] }
    ) { place, row in
      DeviceIdentity(
        device: devices[place], principal: try row.text(0),
        name: DeviceName(stored: try row.optionalText(1)))
    }
  }
}

private enum DeviceQueries {
  static let identity = PlainBatch.find("device_identities", [.init("device", .uuid)]) { key in
    """
    SELECT d.principal, d.name FROM devices AS d
    WHERE d.space = $1 AND d.device = \(key("device"))
    """
  }
  static let setName = PlainStatement(
    "device_name_save", "UPDATE devices SET name = $1 WHERE space = $2 AND device = $3")
  static let countChange = PlainStatement(
    "device_name_count", "UPDATE spaces SET name_changes = name_changes + 1 WHERE id = $1")
}
