import FerryPlatform
import FerryProtocol

/// Names of devices known to this replica: this device, and the devices in conflicts.
///
/// A name is a label, chosen by the device's user. Two devices may have one name, and a name proves
/// nothing about a device.
///
/// ```swift
/// let names = try await replica.deviceNames()
/// for kept in try await replica.conflicts() {
///   print("lost to", names.label(for: kept.conflict.winner.device))
/// }
/// ```
public struct DeviceNames: Sendable, Equatable {
  private var names: [DeviceID: DeviceName] = [:]
  /// The number of devices with each name, as readers distinguish names.
  private var bearers: [String: Int] = [:]
  /// The number of devices with each short identifier.
  private var shortForms: [String: Int] = [:]

  /// Creates the names of known devices, each once.
  init(_ devices: [NamedDevice]) {
    for named in devices {
      shortForms[Self.shortForm(of: named.device), default: 0] += 1
      guard let name = named.name else { continue }
      names[named.device] = name
      bearers[Self.folded(name), default: 0] += 1
    }
  }

  /// The name of a device; `nil` if it has none, or if it is not known here. It has no control
  /// characters and no line breaks.
  public subscript(device: DeviceID) -> String? { names[device]?.text }

  /// Returns a label for users: the name in quotation marks, or the end of the identifier. A value
  /// written by no device, such as one restored by a repair, is the server's.
  ///
  /// If another device has the same name, the end of the identifier follows in parentheses.
  public func label(for device: DeviceID) -> String {
    if device == .server { return "the server" }
    let short = Self.shortForm(of: device)
    // Devices choose their identifiers, so equal ends may be deliberate.
    let identifier = shortForms[short, default: 0] > 1 ? "\(device)" : short
    guard let name = names[device] else { return identifier }
    var quoted = "\""
    for scalar in name.text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
      quoted.unicodeScalars.append(scalar)
    }
    quoted += "\""
    return bearers[Self.folded(name), default: 0] > 1 ? "\(quoted) (\(identifier))" : quoted
  }

  private static func shortForm(of device: DeviceID) -> String { String("\(device)".suffix(8)) }

  /// Returns the name without differences easily overlooked: case, and kinds of spaces.
  private static func folded(_ name: DeviceName) -> String {
    // text: readers overlook the case of all scripts, and all kinds of spaces
    name.text.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
  }
}

extension Replica {
  /// Sets this device's name, shown to users of other devices in conflicts. The next sync sends it.
  /// Until a name is set, a device has none. It has the same name in all spaces of the file.
  ///
  /// ```swift
  /// try await replica.setDeviceName("Ada's laptop")
  /// ```
  ///
  /// - Parameter name: 1 to 64 characters without control characters, line breaks and other
  ///   invisible characters; `nil` removes the name.
  /// - Throws: ``ReplicaError/invalidName(_:)``.
  public func setDeviceName(_ name: String?) async throws {
    let checked = try name.map { (text) throws(ReplicaError) in try DeviceName(chosen: text) }
    try await thread.call { try $0.nameSteps.set(checked) }
    wakeWatchers()
  }

  /// Returns this device's name; `nil` if it has none.
  public func deviceName() async throws -> String? {
    try await thread.call { try $0.deviceNames.own().name?.text }
  }

  /// Returns the names of this device and of the devices in conflicts. A sync receives new and
  /// changed names.
  public func deviceNames() async throws -> DeviceNames {
    try await thread.call { try $0.deviceNames.all(as: $0.identity().device) }
  }
}

extension DeviceName {
  /// Checks a name chosen by a user.
  ///
  /// - Throws: ``ReplicaError/invalidName(_:)``.
  package init(chosen text: String) throws(ReplicaError) {
    do {
      try self.init(checking: text)
    } catch {
      throw .invalidName(error.reason)
    }
  }
}
