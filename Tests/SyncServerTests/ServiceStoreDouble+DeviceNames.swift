import FerryProtocol

@testable import FerrySyncServer

extension ServiceStoreDouble {
  func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      if state.foreignDevices.contains(device) { return false }
      state.deviceNames[device] = name
      return true
    }
  }

  func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice] {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      return devices.compactMap { device in
        state.deviceNames[device].map { NamedDevice(device, $0) }
      }
    }
  }
}
