import FerryProtocol
import Synchronization

extension SyncEngine {
  /// Sends this device's name, and fetches those of devices in conflicts.
  ///
  /// Names are labels. A failure here fails no sync: everything else is exchanged by then, and the
  /// next sync tries again.
  func exchangeNames(_ work: NameWork, _ api: SyncAPI) async {
    if let own = work.own {
      let isTaken = (try? await api.setDeviceName(own)) != nil
      try? await thread.run { try $0.deviceNames.endSending(own, isTaken: isTaken) }
    }
    guard !work.devices.isEmpty, let answer = try? await api.deviceNames(of: work.devices)
    else { return }
    try? await thread.run { try $0.deviceNames.save(answer, of: work.devices) }
  }
}

extension SyncAPI {
  /// Sets or removes this device's name on the server.
  func setDeviceName(_ own: NamedDevice) async throws {
    let answer = try await send(
      .put, "/devices/\(own.device)", body: DeviceNameRequest(name: own.name).encoded())
    let kept = try NamedDevice(decoding: answer.body, limits: limits)
    guard kept == own else {
      throw ReplicaError.unexpectedAnswer(status: 200, "another device or name than the sent one")
    }
  }

  /// Fetches the names of devices.
  func deviceNames(of devices: [DeviceID]) async throws -> DevicesAnswer {
    let body = DevicesRequest(devices: devices).encoded()
    let answer = try await send(.post, "/devices", body: body)
    return try DevicesAnswer(decoding: answer.body, limits: limits)
  }
}

/// The names in the newest page of a round.
final class NewestNames: Sendable {
  private let state = Mutex<ShownNames?>(nil)

  /// `nil` if there was no page yet.
  var now: ShownNames? { state.withLock { $0 } }

  func update(_ head: PageHead, for device: DeviceID) {
    state.withLock {
      $0 = ShownNames(
        device: device, isKnown: head.appliedTail != nil, name: head.deviceName,
        changes: head.nameChanges)
    }
  }
}
