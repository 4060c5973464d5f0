import FerryProtocol
import FerrySyncClient
import Synchronization

/// The owners of devices, as the server lists them for an admin's token. A mirror with another token
/// knows none.
final class MirrorOwners: Sendable {
  /// Devices of one request.
  private static let pageSize = 100
  /// Requests before one step: the next one learns the rest.
  private static let requestsMax = 10
  /// Steps without a request after a refusal, and after another failure.
  private static let pauses = (refused: 1_000, failed: 20)
  /// Devices in memory.
  private static let devicesMax = 10_000

  private struct State {
    /// Empty for a device that the server does not list.
    var owners: [String: String] = [:]
    /// Steps to pass without a request.
    var pause = 0
  }

  private let state = Mutex(State())

  /// Returns the owner of a device; `nil` if it is not known.
  func owner(of device: String) -> String? { state.withLock { $0.owners[device] } }

  /// Learns the owners of devices. A failure is no reason to stop: a row without a known owner
  /// counts, too.
  func learn(_ devices: [String], from replica: Replica) async {
    var missing = unknown(devices)
    for _ in 0..<Self.requestsMax {
      guard let first = missing.first else { return }
      do {
        let found = try await replica.owners(after: first.previous, limit: Self.pageSize)
        let end = found.count < Self.pageSize ? nil : found.last?.device
        let settled = missing.prefix { device in end.map { device <= $0 } ?? true }
        add(found, of: settled)
        missing.removeFirst(max(1, settled.count))
      } catch ReplicaError.refused(let problem)
        where [.forbidden, .unauthorized].contains(problem.code)
      {
        return state.withLock { $0.pause = Self.pauses.refused }
      } catch {
        return state.withLock { $0.pause = Self.pauses.failed }
      }
    }
  }

  private func unknown(_ devices: [String]) -> [DeviceID] {
    state.withLock { state in
      if state.pause > 0 {
        state.pause -= 1
        return []
      }
      return devices.filter { state.owners[$0] == nil }.compactMap { DeviceID($0) }.sorted()
    }
  }

  private func add(_ found: [OwnedDevice], of devices: some Sequence<DeviceID>) {
    state.withLock { state in
      if state.owners.count > Self.devicesMax { state.owners = [:] }
      for device in devices { state.owners[device.description] = "" }
      for entry in found { state.owners[entry.device.description] = entry.owner }
    }
  }
}

extension DeviceID {
  /// The identifier before it.
  fileprivate var previous: DeviceID {
    let (low, borrows) = value.low.subtractingReportingOverflow(1)
    return DeviceID(UniqueID(high: borrows ? value.high &- 1 : value.high, low: low))
  }
}
