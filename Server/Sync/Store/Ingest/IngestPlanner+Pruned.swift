import FerryProtocol

// Decisions about operations pruned from the history (SPEC.md §13).
extension IngestPlanner {
  /// Returns `true` if a packet was applied although the history lacks some of its operations. The
  /// device's chain has passed the packet's tail, and the missing operations may have been pruned.
  /// An operation is never in the history at or below its author's `base`. So an operation made at
  /// or above the retention horizon would still be there. If a copy cut the packet otherwise, its
  /// tail differs.
  func wasApplied(_ packet: Packet, _ tail: OperationID) -> Bool {
    let retentionHorizon = context.space.retentionHorizon
    guard retentionHorizon > 0, chains[packet.device]?.recent.contains(tail) == true else {
      return false
    }
    return packet.operations.allSatisfy { operation in
      author(of: operation.id) != nil || operation.base < retentionHorizon && operation.id <= tail
    }
  }

  /// Returns `true` if an unknown dependency was pruned, and is not still to come. A device's
  /// identifiers ascend, and the dependency is before all operations in the chain's memory. A
  /// device with other identifiers gets the answer of a copied device, which loses nothing.
  func isForgotten(_ dependency: OperationID, by chain: DeviceChain) -> Bool {
    guard context.space.retentionHorizon > 0, chain.hasForgotten, let oldest = chain.recent.first
    else { return false }
    return dependency < oldest
  }
}
