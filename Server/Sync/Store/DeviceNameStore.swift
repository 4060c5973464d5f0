import FerryProtocol

/// The names of devices in a store (SPEC.md §30).
///
/// A name is stored with its device: a principal's quota of devices bounds the names, and deleting
/// a device deletes its name.
package protocol DeviceNameStore: Sendable {
  /// Sets the name of a principal's device, or removes it with `nil`. A changed name raises the
  /// space's number of name changes.
  ///
  /// - Returns: `true` if the device belongs to the principal; if not, nothing changes.
  func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool

  /// Returns the devices with a name, in the order of `devices`.
  func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice]
}

extension DeviceName {
  /// Reads a name from a store; `nil` if it is none.
  init?(stored text: String?) {
    guard let text, let name = try? DeviceName(checking: text) else { return nil }
    self = name
  }
}
