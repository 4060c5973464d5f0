import FerryProtocol

/// The names shown to this device by a page of the pull list (SPEC.md §30).
struct ShownNames: Sendable, Equatable {
  /// The device's identifier in the request.
  let device: DeviceID
  /// True if packets of the identifier are in the history.
  let isKnown: Bool
  /// The server's name for the identifier.
  let name: DeviceName?
  /// How often names in the space have changed.
  let changes: SequenceNumber
}

/// This device's name, and the name on the server. Pure.
///
/// The server's pages show the name stored there. So a name lost with an identifier or with a
/// restored server is sent again, and otherwise no request is necessary.
struct OwnName: Sendable, Equatable {
  /// The name; `nil` if the user gave none.
  private(set) var name: DeviceName?
  /// The last known name on the server, with the identifier; `nil` if the server has none.
  private(set) var sent: NamedDevice?
  /// True if the server refused the name. The next page decides whether it is sent again.
  private(set) var isRefused = false
  /// How often names in the space have changed, as the last page shows.
  private(set) var changes: SequenceNumber = 0

  /// Creates the state of a device without a name.
  init() {}

  /// Creates a stored state.
  init(name: DeviceName?, sent: NamedDevice?, isRefused: Bool, changes: SequenceNumber) {
    (self.name, self.sent) = (name, sent)
    (self.isRefused, self.changes) = (isRefused, changes)
  }

  /// Sets the name chosen by the user.
  mutating func set(_ name: DeviceName?) { (self.name, isRefused) = (name, false) }

  /// Applies the names shown by a page. Returns true if names of other devices may have changed.
  mutating func apply(_ shown: ShownNames) -> Bool {
    if shown.isKnown {
      (sent, isRefused) = (NamedDevice(shown.device, shown.name), false)
    } else if sent?.device == shown.device {
      sent = nil
    }
    defer { changes = shown.changes }
    return changes != shown.changes
  }

  /// Returns true if the server lacks the name.
  ///
  /// - Parameters:
  ///   - device: the present identifier.
  ///   - isKnown: true if the server has packets of it: only such a device can have a name.
  func isToSend(as device: DeviceID, isKnown: @autoclosure () throws -> Bool) rethrows -> Bool {
    let theirs = sent?.device == device ? sent?.name : nil
    return try theirs != name && !isRefused && isKnown()
  }

  /// Applies the result of sending a name.
  mutating func end(sending sent: NamedDevice, isTaken: Bool) {
    if isTaken { self.sent = sent }
    // If the user changed the name meanwhile, the new one is sent next.
    isRefused = !isTaken && sent.name == name
  }
}
