extension NamedDevice: JSONMessage {
  package static var blank: Self { Self(.server, nil) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("device", &device)
    try json.nullable("name", &name)
  }
}

extension DeviceNameRequest: JSONMessage {
  package static var blank: Self { Self(name: nil) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required(
      "name", &name, as: JSONForm.value.nullable,
      missing: "the device's name, or null, is missing")
  }
}

extension DevicesRequest: JSONMessage {
  package static var blank: Self { Self(devices: []) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("devices", &devices, as: JSONForm<DeviceID>.value.devices(json.rules) { $0 })
    try json.check(!devices.isEmpty, "no device is named")
  }
}

extension DevicesAnswer: JSONMessage {
  package static var blank: Self { Self(devices: []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let form = JSONForm<NamedDevice>.value.devices(json.rules, \.device)
    try json.required("devices", &devices, as: form, missing: "an answer without devices")
  }
}

extension JSONForm {
  /// A list of devices, none of them twice.
  fileprivate func devices(
    _ rules: ReadingRules, _ device: @escaping (T) -> DeviceID
  ) -> JSONForm<[T]> {
    list(max: rules.sync.devicesPerRequest, "devices").checked { devices, _ in
      var seen = Set<DeviceID>()
      let other = devices.first { !seen.insert(device($0)).inserted }
      return other.map { "device \(device($0)) is a duplicate" }
    }
  }
}
