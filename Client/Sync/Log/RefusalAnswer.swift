import FerryProtocol

/// The answer to a packet that the server can never apply. Operations that the server names leave
/// the queue. If it names none, smaller packets find the transaction. So do they if batches are too
/// large together.
enum RefusalAnswer: Equatable {
  /// The named operations leave the queue, with all that depend on them.
  case quarantineNamed
  /// The packet's only transaction leaves the queue.
  case quarantineAll
  /// The queue is cut again, with this many transactions in a packet.
  case narrow(to: Int)
  /// Each packet is filled up to the size of a message.
  case widen
  /// The queue stays unchanged until the server has room for it.
  case wait

  /// How often a packet must be rejected before the device accepts the rejection. It applies if the
  /// server reports the packet as malformed, or if the answer is not the server's. Damage of a
  /// packet or an answer on the way happens once, and a real rejection happens each time.
  static let rejectionsMax = 4

  /// Codes of limits that all batches of a packet share (SPEC.md §14): in smaller packets, each of
  /// them may fit.
  private static let sharedLimits: Set<RefusalCode> = [.invalidPredicate, .batchTooExpensive]

  /// Decides about a rejected packet.
  ///
  /// - Parameters:
  ///   - transactions: the number of transactions in the packet.
  ///   - isWidest: true if the packet is as large as it may be.
  static func decide(
    _ problem: Problem, transactions: Int, isWidest: Bool = false
  ) -> RefusalAnswer {
    if problem.code == .storageQuota { return isWidest ? .wait : .widen }
    let isShared = problem.refusals.contains { sharedLimits.contains($0.code) }
    if transactions > 1, isShared || problem.refusals.isEmpty {
      return .narrow(to: transactions / 2)
    }
    return problem.refusals.isEmpty ? .quarantineAll : .quarantineNamed
  }

  /// Returns true if the server rejects a packet's content, and not the sender or the address.
  /// ``decide(_:transactions:isWidest:)`` handles such codes.
  static func concerns(_ code: ProblemCode) -> Bool {
    switch code {
    case .operationRefused, .malformedMessage, .limitExceeded, .storageQuota: true
    default: false
    }
  }
}
