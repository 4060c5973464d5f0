import FerryProtocol
import Synchronization

/// Devices with a mistaken quick decision (``IngestLookUps``). Their next batches are decided
/// thoroughly: a device with such packets does not cause futile writes again and again.
final class MistakenDevices: Sendable {
  private struct Key: Hashable {
    let space: Int64
    let device: DeviceID
  }

  /// The number of remembered devices. Above it, all are forgotten.
  private static let limit = 10_000

  private let devices = Mutex<Set<Key>>([])

  func record(_ packets: [IncomingPacket], in space: Int64) {
    devices.withLock { devices in
      if devices.count >= Self.limit { devices = [] }
      for packet in packets { devices.insert(Key(space: space, device: packet.packet.device)) }
    }
  }

  /// Returns whether a packet is of such a device.
  func concern(_ packets: [IncomingPacket], in space: Int64) -> Bool {
    devices.withLock { devices in
      if devices.isEmpty { return false }
      return packets.contains { devices.contains(Key(space: space, device: $0.packet.device)) }
    }
  }
}
