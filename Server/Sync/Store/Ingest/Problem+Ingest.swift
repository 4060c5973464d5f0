import FerryProtocol

extension Problem {
  /// The problem of a reader whose space was deleted meanwhile.
  static let spaceGone = Problem(.unknownSpace, "the space does not exist any more")

  /// A token was made after the request was admitted without one.
  static let noLongerOpen = Problem(
    .unauthorized, "the server has tokens now; send one of this space")

  /// Returns the problem of a packet with operations that can never be applied.
  static func operationRefused(_ refusals: [Refusal]) -> Problem {
    let count = refusals.count.counted("operation")
    return Problem(
      .operationRefused,
      "\(count) can never be applied; the server applied no part of the packet",
      refusals: refusals)
  }

  /// Returns the problem of a device identifier used by another principal.
  package static func deviceTaken(_ device: DeviceID) -> Problem {
    Problem(
      .deviceTaken,
      "device \(device) belongs to another user. Take a new device identifier, and send the "
        + "unconfirmed operations again")
  }

  /// The problem of a packet without a cursor, which the space's schema requires.
  static let cursorRequired = Problem(
    .cursorRequired,
    "this space accepts packets only with ?cursor=: pull first, and send the cursor"
  )

  /// Returns the problem of a sender too old for the space; `nil` if the sender is recent enough.
  static func upgradeRequired(from version: Int, to minimum: Int) -> Problem? {
    if version >= minimum { return nil }
    return Problem(
      .upgradeRequired,
      "the space requires protocol \(minimum) or newer; this client has \(version). Update "
        + "Ferry on this device; its pending operations stay")
  }
}

extension [Refusal] {
  /// Returns the refusals in the order of the operations in the packets, each operation once.
  func inOrder(of packets: [Packet]) -> [Refusal] {
    var first: [OperationID: Refusal] = [:]
    for refusal in self where first[refusal.operation] == nil {
      first[refusal.operation] = refusal
    }
    return packets.flatMap(\.operations).compactMap { first.removeValue(forKey: $0.id) }
  }

  /// Returns the first refusals that fit into an answer of so many bytes, one at least. A device
  /// that has removed these gets the others when it sends the rest.
  func bounded(by bytes: Int) -> [Refusal] {
    var room = bytes
    let count = prefix { refusal in
      room -= refusal.byteCount
      return room >= 0
    }.count
    return Array(prefix(Swift.max(1, count)))
  }
}

extension Refusal {
  /// The most bytes of it as JSON.
  fileprivate var byteCount: Int {
    let texts = detail.utf8.count + table.utf8.count + record.utf8.count
    return 256 + 6 * (texts + (holder?.utf8.count ?? 0))
  }
}
