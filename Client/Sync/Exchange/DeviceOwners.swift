import FerryNetworking
import FerryProtocol

/// A device of a space with its owner.
package struct OwnedDevice: Sendable, Equatable {
  package let device: DeviceID
  /// The principal that uses the device.
  package let owner: String
}

extension Replica {
  /// Returns the devices of the space after one, by identifier. Needs an admin's token.
  ///
  /// - Parameter limit: 500 at most. Fewer devices are all there are.
  package func owners(after device: DeviceID, limit: Int) async throws -> [OwnedDevice] {
    let api = try await engine.api()
    do {
      return try await api.owners(after: device, limit: limit)
    } catch {
      throw ReplicaError(error)
    }
  }
}

extension SyncAPI {
  fileprivate func owners(after device: DeviceID, limit: Int) async throws -> [OwnedDevice] {
    let query = [QueryItem("after", device.description), QueryItem("limit", "\(limit)")]
    let body = try await send(.get, "/devices", query: query).body
    var found: [OwnedDevice] = []
    try body.withUnsafeBytes { buffer in
      var reader = JSONReader(buffer)
      try reader.object { (key, reader) throws(MalformedMessage) in
        guard case "devices" = key else {
          _ = try reader.skip()
          return
        }
        try reader.array { (reader) throws(MalformedMessage) in
          guard found.count < limit else { throw reader.malformed("more than \(limit) devices") }
          found.append(try OwnedDevice(from: &reader))
        }
      }
    }
    return found
  }
}

extension OwnedDevice {
  fileprivate init(from reader: inout JSONReader) throws(MalformedMessage) {
    var (device, owner): (DeviceID?, String?) = (nil, nil)
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "device": device = DeviceID(try reader.uniqueID())
      case "principal": owner = try reader.string()
      default: _ = try reader.skip()
      }
    }
    guard let device, let owner else { throw reader.malformed("a device without an owner") }
    self.init(device: device, owner: owner)
  }
}
