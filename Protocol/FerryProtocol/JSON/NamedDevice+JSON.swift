extension DeviceName: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string(text) }
}

extension JSONReader {
  /// Reads a device's name and checks it; `nil` for `null`.
  mutating func deviceName() throws(MalformedMessage) -> DeviceName? {
    if try null() { return nil }
    let text = try string()
    do throws(DeviceNameFault) {
      return try DeviceName(checking: text)
    } catch {
      throw malformed(error.reason)
    }
  }

  /// Reads the identifier of a device; the server's own is none.
  fileprivate mutating func deviceID() throws(MalformedMessage) -> DeviceID {
    let device = DeviceID(try uniqueID())
    guard device != .server else { throw malformed("the nil UUID is no device") }
    return device
  }

  /// Reads the elements of a list of devices, none of them twice.
  fileprivate mutating func devices<Element>(
    limits: Limits, device: (Element) -> DeviceID,
    _ element: (inout JSONReader) throws(MalformedMessage) -> Element
  ) throws(MalformedMessage) -> [Element] {
    var elements: [Element] = []
    var seen = Set<DeviceID>()
    try array { (reader) throws(MalformedMessage) in
      guard elements.count < limits.devicesPerRequest else {
        throw reader.malformed("more than \(limits.devicesPerRequest) devices")
      }
      let next = try element(&reader)
      guard seen.insert(device(next)).inserted else {
        throw reader.malformed("device \(device(next)) is a duplicate")
      }
      elements.append(next)
    }
    return elements
  }

  fileprivate mutating func namedDevice() throws(MalformedMessage) -> NamedDevice {
    var device: DeviceID?
    var name: DeviceName?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "device": device = try reader.deviceID()
      case "name": name = try reader.deviceName()
      default: try reader.skip()
      }
    }
    guard let device else { throw malformed("a name without its device") }
    return NamedDevice(device, name)
  }
}

extension NamedDevice {
  /// Returns the encoded pair.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 128)
    write(to: &json)
    return json.finish()
  }

  /// Reads a pair and checks the name.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      try reader.namedDevice()
    }
  }
}

extension NamedDevice: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("device", device.value)
      json.member("name", name)
    }
  }
}

extension DeviceNameRequest {
  /// Returns the encoded request.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 128)
    json.object { $0.member("name", name) }
    return json.finish()
  }

  /// Reads a request and checks the name.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var request: DeviceNameRequest?
      try reader.object { (key, reader) throws(MalformedMessage) in
        guard case "name" = key else {
          try reader.skip()
          return
        }
        guard request == nil else { throw reader.malformed("name is a duplicate") }
        request = DeviceNameRequest(name: try reader.deviceName())
      }
      guard let request else { throw reader.malformed("the device's name, or null, is missing") }
      return request
    }
  }
}

extension DevicesRequest {
  /// Returns the encoded request.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 16 + devices.count * 40)
    json.object { json in
      json.key("devices")
      json.array(of: devices.map(\.value))
    }
    return json.finish()
  }

  /// Reads a request and checks it against `limits`.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var devices: [DeviceID]?
      try reader.object { (key, reader) throws(MalformedMessage) in
        guard case "devices" = key else {
          try reader.skip()
          return
        }
        guard devices == nil else { throw reader.malformed("devices is a duplicate") }
        devices = try reader.devices(limits: limits, device: { $0 }) {
          (reader) throws(MalformedMessage) in try reader.deviceID()
        }
      }
      guard let devices, !devices.isEmpty else { throw reader.malformed("no device is named") }
      return DevicesRequest(devices: devices)
    }
  }
}

extension DevicesAnswer {
  /// Returns the encoded answer.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 16 + devices.count * 96)
    json.object { json in
      json.key("devices")
      json.array(of: devices)
    }
    return json.finish()
  }

  /// Reads an answer and checks each name.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var devices: [NamedDevice]?
      try reader.object { (key, reader) throws(MalformedMessage) in
        guard case "devices" = key else {
          try reader.skip()
          return
        }
        devices = try reader.devices(limits: limits, device: \.device) {
          (reader) throws(MalformedMessage) in try reader.namedDevice()
        }
      }
      guard let devices else { throw reader.malformed("an answer without devices") }
      return DevicesAnswer(devices: devices)
    }
  }
}
