import FerryProtocol

extension Problem {
  /// Operations that can never be applied turn their packet away.
  static func operationRefused(_ refusals: [Refusal]) -> Problem {
    let count =
      refusals.count == 1 ? "1 operation" : "\(refusals.count) operations"
    return Problem(
      .operationRefused,
      "\(count) can never be applied; nothing of the packet was kept",
      refusals: refusals)
  }

  /// The sender is too old for the space; `nil` where it is not.
  static func upgradeRequired(from version: Int, to minimum: Int) -> Problem? {
    if version >= minimum { return nil }
    return Problem(
      .upgradeRequired,
      "the space asks for protocol \(minimum) or newer; this client speaks \(version). Update "
        + "Ferry on this device; its pending work stays")
  }
}

extension [Refusal] {
  /// In the order in which the operations stand in the packets, each once.
  func inOrder(of packets: [Packet]) -> [Refusal] {
    var first: [OperationID: Refusal] = [:]
    for refusal in self where first[refusal.operation] == nil {
      first[refusal.operation] = refusal
    }
    return packets.flatMap(\.operations).compactMap { first.removeValue(forKey: $0.id) }
  }
}
