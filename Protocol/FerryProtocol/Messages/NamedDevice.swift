/// A device with a name (SPEC.md §30).
package struct NamedDevice: Sendable, Equatable {
  /// The device.
  package var device: DeviceID
  /// The name; `nil` if the device has none.
  package var name: DeviceName?

  /// Creates a pair.
  package init(_ device: DeviceID, _ name: DeviceName?) {
    (self.device, self.name) = (device, name)
  }
}

/// The content of `PUT …/devices/{device}`: the device's name from now on.
package struct DeviceNameRequest: Sendable, Equatable {
  /// The name; `nil` removes it.
  package var name: DeviceName?

  /// Creates a request.
  package init(name: DeviceName?) { self.name = name }
}

/// A request for the names of devices.
package struct DevicesRequest: Sendable, Equatable {
  /// One at least, ``Limits/devicesPerRequest`` at most, none of them twice.
  package var devices: [DeviceID]

  /// Creates a request.
  package init(devices: [DeviceID]) { self.devices = devices }
}

/// The answer to a request for names: the requested devices with a name.
package struct DevicesAnswer: Sendable, Equatable {
  /// Devices with names, in the requested order.
  package var devices: [NamedDevice]

  /// Creates an answer.
  package init(devices: [NamedDevice]) { self.devices = devices }
}
