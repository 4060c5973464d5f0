import FerryProtocol

/// Special sizes of packets, after the server or a proxy before it rejected one.
struct PacketCut: Sendable, Equatable {
  /// The most transactions in a packet.
  var groupsMax = Int.max
  /// The target size of a packet in bytes; `nil` for the usual number.
  var bytesMax: Int?
  /// True for a packet as large as a message may be. A quota counts the result of a packet: with
  /// the deletes that follow the inserts, it may fit.
  var isWidest = false

  /// Returns the target size of a packet in bytes.
  func bytesTarget(_ limits: Limits) -> Int {
    let usual = isWidest ? limits.messageBytes / 4 * 3 : limits.packetBytesTarget
    return min(usual, bytesMax ?? .max)
  }

  /// The answer to a packet rejected by a proxy.
  enum Answer: Equatable {
    /// The queue is cut again, in this way.
    case narrow(PacketCut)
    /// The packet cannot be cut further: the transaction in it leaves the queue.
    case quarantine
  }

  /// Decides about a packet too large for a proxy. It halves the packet until a single operation is
  /// left, or until the transaction has more parts than a server keeps.
  ///
  /// - Parameters:
  ///   - bytes: the size of the rejected packet.
  ///   - partsMax: the most packets of one transaction.
  func afterTooLarge(
    bytes: Int, operations: Int, transactions: Int, transactionBytes: Int, partsMax: Int
  ) -> Answer {
    let half = max(1, min(bytes, bytesMax ?? .max) / 2)
    if operations <= 1 { return .quarantine }
    if transactions <= 1, transactionBytes / half >= partsMax { return .quarantine }
    return .narrow(PacketCut(groupsMax: groupsMax, bytesMax: half, isWidest: isWidest))
  }

  /// Decides about a packet after a proxy rejected the content. It reduces the number of
  /// transactions until one is left.
  func afterRefusal(transactions: Int) -> Answer {
    if transactions <= 1 { return .quarantine }
    return .narrow(
      PacketCut(groupsMax: transactions / 2, bytesMax: bytesMax, isWidest: isWidest))
  }
}
