import FerryProtocol

/// The names that a page of the pull list shows to this device (SPEC.md §30).
struct ShownNames: Sendable, Equatable {
  /// The identifier under which the device asked.
  let device: DeviceID
  /// Whether packets of that identifier are in the history.
  let isKnown: Bool
  /// The name that the server has for it.
  let name: DeviceName?
  /// How often names in the space have changed.
  let changes: SequenceNumber
}

/// This device's name, and its name on the server. Pure.
///
/// The server's pages show the name that it has. So a name that got lost with an identifier or with a
/// restored server is sent again, and otherwise no request is necessary.
struct OwnName: Sendable, Equatable {
  /// The name; `nil` if the user gave none.
  private(set) var name: DeviceName?
  /// The name that the server had last, with the identifier; `nil` if the server has none.
  private(set) var sent: NamedDevice?
  /// Whether the server refused the name. The next page decides whether it is sent again.
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

  /// Takes a name from the user.
  mutating func set(_ name: DeviceName?) { (self.name, isRefused) = (name, false) }

  /// Takes the names that a page shows. Returns whether names of other devices may have changed.
  mutating func apply(_ shown: ShownNames) -> Bool {
    if shown.isKnown {
      (sent, isRefused) = (NamedDevice(shown.device, shown.name), false)
    } else if sent?.device == shown.device {
      sent = nil
    }
    defer { changes = shown.changes }
    return changes != shown.changes
  }

  /// Whether the server lacks the name.
  ///
  /// - Parameters:
  ///   - device: the present identifier.
  ///   - isKnown: whether the server has packets of it: only such a device can have a name.
  func isToSend(as device: DeviceID, isKnown: @autoclosure () throws -> Bool) rethrows -> Bool {
    let theirs = sent?.device == device ? sent?.name : nil
    return try theirs != name && !isRefused && isKnown()
  }

  /// Takes the result of sending a name.
  mutating func end(sending sent: NamedDevice, isTaken: Bool) {
    if isTaken { self.sent = sent }
    // A name that the user changed meanwhile is sent next.
    isRefused = !isTaken && sent.name == name
  }
}
