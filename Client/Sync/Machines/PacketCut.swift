import FerryProtocol

/// How packets are cut otherwise than usual, since the server or a proxy before it refused one.
struct PacketCut: Sendable, Equatable {
  /// Transactions in a packet.
  var groupsMax = Int.max
  /// Bytes of a packet that it aims at; nil for the usual ones.
  var bytesMax: Int?
  /// Whether a packet takes as much as a message may hold. A quota judges what a packet leaves
  /// behind: one that also carries the deletes behind the inserts may fit.
  var isWidest = false

  /// Bytes of a packet to aim at.
  func bytesTarget(_ limits: Limits) -> Int {
    let usual = isWidest ? limits.messageBytes / 4 * 3 : limits.packetBytesTarget
    return min(usual, bytesMax ?? .max)
  }

  /// What becomes of a packet that a proxy refused.
  enum Answer: Equatable {
    /// The queue is cut again, in this way.
    case narrow(PacketCut)
    /// It cannot be cut any more: its transaction leaves the queue.
    case quarantine
  }

  /// Decides about a packet that is too large for a proxy: half of it is tried, until a single
  /// operation is left, or until the parts of its transaction would be more than a server keeps.
  ///
  /// - Parameters:
  ///   - bytes: of the refused packet.
  ///   - partsMax: packets that one transaction may be cut into.
  func afterTooLarge(
    bytes: Int, operations: Int, transactions: Int, transactionBytes: Int, partsMax: Int
  ) -> Answer {
    let half = max(1, min(bytes, bytesMax ?? .max) / 2)
    if operations <= 1 { return .quarantine }
    if transactions <= 1, transactionBytes / half >= partsMax { return .quarantine }
    return .narrow(PacketCut(groupsMax: groupsMax, bytesMax: half, isWidest: isWidest))
  }

  /// Decides about a packet whose content a proxy refused: fewer transactions are tried until one is
  /// left.
  func afterRefusal(transactions: Int) -> Answer {
    if transactions <= 1 { return .quarantine }
    return .narrow(
      PacketCut(groupsMax: transactions / 2, bytesMax: bytesMax, isWidest: isWidest))
  }
}
