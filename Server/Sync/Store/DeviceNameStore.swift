import FerryProtocol

/// The part of a store that keeps the names of devices (SPEC.md §30).
///
/// A name is kept with its device: a principal's quota of devices bounds the names, and a forgotten
/// device takes its name along.
package protocol DeviceNameStore: Sendable {
  /// Gives a device of a principal a name, or takes it away with `nil`. A changed name raises the
  /// space's number of changed names.
  ///
  /// - Returns: Whether the device belongs to the principal; if not, nothing is changed.
  func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool

  /// Returns those of the devices that have a name, in the order of `devices`.
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
