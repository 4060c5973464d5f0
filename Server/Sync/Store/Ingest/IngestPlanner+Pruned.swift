import FerryProtocol

// Decisions about operations that were pruned from the history (SPEC.md §13).
extension IngestPlanner {
  /// Returns whether a packet was applied although the history lacks some of its operations. Its
  /// device's chain has passed its tail, and the missing operations may have been pruned. An
  /// operation is never in the history at or below its author's `base`. So one made at or above the
  /// retention horizon would still be there. If a copy cut the packet otherwise, its tail differs.
  func wasApplied(_ packet: Packet, _ tail: OperationID) -> Bool {
    let retentionHorizon = context.space.retentionHorizon
    guard retentionHorizon > 0, chains[packet.device]?.recent.contains(tail) == true else {
      return false
    }
    return packet.operations.allSatisfy { operation in
      author(of: operation.id) != nil || operation.base < retentionHorizon && operation.id <= tail
    }
  }

  /// Returns whether an unknown dependency was pruned, and is not still to come. A device's
  /// identifiers ascend, and the dependency is before all that its chain remembers. A device that
  /// makes its identifiers otherwise gets the answer that it was copied, which loses nothing.
  func isForgotten(_ dependency: OperationID, by chain: DeviceChain) -> Bool {
    guard context.space.retentionHorizon > 0, chain.hasForgotten, let oldest = chain.recent.first
    else { return false }
    return dependency < oldest
  }
}
