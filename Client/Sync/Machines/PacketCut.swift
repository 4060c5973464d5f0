import FerryProtocol

/// Special sizes of packets, after the server or a proxy before it rejected one.
struct PacketCut: Sendable, Equatable {
  /// The most transactions in a packet.
  var groupsMax = Int.max
  /// The bytes that a packet aims at; `nil` for the usual number.
  var bytesMax: Int?
  /// Whether a packet is as large as a message may be. A quota counts the result of a packet: with
  /// the deletes that follow its inserts, it may fit.
  var isWidest = false

  /// Returns the bytes that a packet aims at.
  func bytesTarget(_ limits: Limits) -> Int {
    let usual = isWidest ? limits.messageBytes / 4 * 3 : limits.packetBytesTarget
    return min(usual, bytesMax ?? .max)
  }

  /// The answer to a packet that a proxy rejected.
  enum Answer: Equatable {
    /// The queue is cut again, in this way.
    case narrow(PacketCut)
    /// The packet cannot be cut further: its transaction leaves the queue.
    case quarantine
  }

  /// Decides about a packet that is too large for a proxy. It halves the packet until a single
  /// operation is left, or until its transaction has more parts than a server keeps.
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

  /// Decides about a packet whose content a proxy rejected. It reduces the number of transactions
  /// until one is left.
  func afterRefusal(transactions: Int) -> Answer {
    if transactions <= 1 { return .quarantine }
    return .narrow(
      PacketCut(groupsMax: transactions / 2, bytesMax: bytesMax, isWidest: isWidest))
  }
}
