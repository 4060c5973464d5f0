import FerryProtocol

/// Operations brought into the history by a batch. The index is built at the first look-up, because
/// most batches need none.
final class PlacedOperations {
  private var devices: [OperationID: DeviceID] = [:]
  private var added: [(operations: [SyncOperation], device: DeviceID)] = []

  func add(_ operations: [SyncOperation], of device: DeviceID) {
    added.append((operations, device))
  }

  /// Returns the device of the chain with which an operation comes first; `nil` if none brings it.
  func device(of id: OperationID) -> DeviceID? {
    for (operations, device) in added {
      devices.reserveCapacity(devices.count + operations.count)
      for index in operations.indices {
        let id = operations[index].id
        if devices[id] == nil { devices[id] = device }
      }
    }
    added = []
    return devices[id]
  }
}
