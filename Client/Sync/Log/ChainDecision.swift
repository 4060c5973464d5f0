import FerryProtocol

/// Decides how a device continues its chain after a page has named the chain's tail on the server
/// (SPEC.md §4, §18).
///
/// A pure machine: the replica's file loads the facts once, and executes the decision.
enum ChainDecision: Equatable {
  /// The server knows no more and no less than expected.
  case goOn
  /// The server has everything through the named tail.
  case confirm
  /// The server lost the confirmed packets after one of them: they are sent again, unchanged.
  case sendAgain(after: Int64)
  /// Everything still here is sent again in a new chain: the server does not know this device, or
  /// the server's chain ends at an operation unknown here.
  case sendAllAgain
  /// A copy of this file has written under the same device identifier, after packets unknown here.
  /// The device chooses another identifier.
  case leaveToCopy

  /// The facts for the decision.
  struct Facts: Equatable {
    /// True if the server was rolled back past this device's cursor.
    var isSetBack = false
    /// The place of the tail in the chain on the server.
    var tail = Tail.none
    /// True if packets were confirmed after the tail, or at all if the server names none.
    var hasConfirmedLater = false
    /// True if packets are kept that were confirmed under an earlier identifier. The tail of the
    /// newest identifier shows nothing about them: its first packet may have arrived after the
    /// rollback.
    var keepsEarlierChains = false
  }

  /// The tail named by a page, compared with the packets made here.
  enum Tail: Equatable {
    /// The server does not know the device's identifier.
    case none
    /// The tail ends the packet with this number, kept now or earlier.
    case packet(Int64)
    /// The tail is the end of this device's chain, and the packet there is not kept any more.
    case newest
    /// No packet of this device is known to end with it.
    case unknown
  }

  init(_ facts: Facts) {
    switch facts.tail {
    case .none:
      self = facts.hasConfirmedLater ? .sendAllAgain : .goOn
    case _ where facts.isSetBack && facts.keepsEarlierChains:
      self = .sendAllAgain
    case .packet(let number):
      self = facts.hasConfirmedLater ? .sendAgain(after: number) : .confirm
    case .newest:
      self = .goOn
    case .unknown:
      // A rolled-back server: this device does not know how far. The server recognises operations
      // by their identifiers.
      self = facts.isSetBack ? .sendAllAgain : .leaveToCopy
    }
  }
}
