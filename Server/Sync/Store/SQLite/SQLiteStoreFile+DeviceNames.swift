import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) throws -> Bool {
    try connection.transaction {
      guard let known = try self.device(device, in: space), known.owner == principal else {
        return false
      }
      if known.name == name { return true }
      try connection.run(
        "UPDATE devices SET name = ? WHERE space = ? AND device = ?", name?.text, space,
        device.value)
      try connection.run("UPDATE spaces SET name_changes = name_changes + 1 WHERE id = ?", space)
      return true
    }
  }

  func deviceNames(of devices: [DeviceID], in space: Int64) throws -> [NamedDevice] {
    try connection.transaction(.deferred) {
      try devices.compactMap { device in
        let name =
          try connection.first(
            "SELECT name FROM devices WHERE space = ? AND device = ?", space, device.value
          ) { DeviceName(stored: $0.optionalText(0)) } ?? nil
        return name.map { NamedDevice(device, $0) }
      }
    }
  }
}

extension SQLiteStore {
  package func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool {
    try await write { try $0.setDeviceName(name, of: device, in: space, by: principal) }
  }

  package func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice] {
    try await read { try $0.deviceNames(of: devices, in: space) }
  }
}
