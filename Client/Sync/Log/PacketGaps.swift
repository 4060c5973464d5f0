import FerryProtocol

/// Decides how packets continue after the loss of operations: the chain skips the lost ones
/// (SPEC.md §17).
///
/// The other operations stay merged in their packets, since the server may know them by these
/// identifiers. A pure machine.
struct PacketGaps: Equatable {
  /// A packet with the remaining operations.
  struct Packet: Equatable {
    let number: Int64
    let dependency: OperationID?
    let operations: [OperationID]
  }

  /// The change of a packet; it is sent again.
  enum Change: Equatable {
    case replace(Int64, dependency: OperationID?, tail: OperationID, operations: Int)
    /// Nothing of it is left.
    case remove(Int64)
  }

  private(set) var changes: [Change] = []
  /// The end of the chain.
  private(set) var tail: OperationID?

  /// - Parameter packets: those from the first packet with a gap on, in order.
  init(in packets: [Packet]) {
    tail = packets.first?.dependency
    for packet in packets {
      if let last = packet.operations.last {
        changes.append(
          .replace(
            packet.number, dependency: tail, tail: last, operations: packet.operations.count))
        tail = last
      } else {
        changes.append(.remove(packet.number))
      }
    }
  }
}
