import FerryProtocol

/// What becomes of a packet that the server can never take as it is. Where the server names the
/// operations they leave the queue; otherwise smaller packets tell which transaction it is.
enum RefusalAnswer: Equatable {
  /// The operations that the server named leave the queue, with what depends on them.
  case quarantineNamed
  /// The packet's only transaction leaves the queue.
  case quarantineAll
  /// The queue is cut anew, with so many transactions in a packet.
  case narrow(to: Int)
  /// Each packet is filled up to the size of a message.
  case widen
  /// The queue stays as it is until there is room for it.
  case wait

  /// How often the server has to find a packet malformed before it is believed: what was damaged on
  /// its way is malformed once, what was made so is each time.
  static let malformedMax = 4

  /// - Parameters:
  ///   - transactions: in the packet.
  ///   - isWidest: whether the packet holds as much as it may.
  static func decide(
    _ problem: Problem, transactions: Int, isWidest: Bool = false
  ) -> RefusalAnswer {
    if problem.code == .storageQuota { return isWidest ? .wait : .widen }
    if !problem.refusals.isEmpty { return .quarantineNamed }
    return transactions > 1 ? .narrow(to: transactions / 2) : .quarantineAll
  }

  /// Whether it is what a packet holds that the server refuses, and not who sends it or where to.
  /// ``decide(_:transactions:isWidest:)`` answers these.
  static func concerns(_ code: ProblemCode) -> Bool {
    switch code {
    case .operationRefused, .malformedMessage, .limitExceeded, .storageQuota: true
    default: false
    }
  }
}
