import FerryHTTPServer
import FerryProtocol

/// Sets and returns the names of devices (SPEC.md §30).
struct DeviceNameHandler: Sendable {
  let core: ServiceCore

  /// Sets or removes the name of one of the caller's devices.
  func setName(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    guard let text = context.match.itemText, let device = DeviceID(text), device != .server else {
      throw Problem(
        .malformedMessage, "a device is a UUID of 36 characters, but not the nil UUID")
    }
    context.device = device
    let wanted = try core.read(context.request.body, DeviceNameRequest.init(decoding:limits:)).name
    let space = try await core.find(name)
    let principal = admission.principal
    let isOwn = try await core.ask { (store) async throws(StoreError) in
      try await store.setDeviceName(wanted, of: device, in: space.id, by: principal)
    }
    // One answer for unknown devices and those of others: nobody learns which exist.
    guard isOwn else {
      throw Problem(
        .notFound,
        "you have no device \(device) in space \(name); send a packet as this device first")
    }
    return .json(NamedDevice(device, wanted).encoded())
  }

  /// Returns the names of the devices listed in the body.
  func list(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let wanted = try core.read(context.request.body, DevicesRequest.init(decoding:limits:))
    let space = try await core.find(name)
    let found = try await core.ask { (store) async throws(StoreError) in
      try await store.deviceNames(of: wanted.devices, in: space.id)
    }
    return .json(DevicesAnswer(devices: found).encoded())
  }
}
