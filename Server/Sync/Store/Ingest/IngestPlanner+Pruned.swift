import FerryProtocol

// What a planner can still say of operations that were pruned from the history (SPEC.md §13).
extension IngestPlanner {
  /// Whether a packet was applied although not all of its operations are in the history any more:
  /// its device's chain has gone over its tail, and what is missing may have been pruned. An
  /// operation never was in the history below what its author had seen, so one made at or above
  /// the floor would still be there. A packet that a copy cut otherwise is told by its tail.
  func wasApplied(_ packet: Packet, _ tail: OperationID) -> Bool {
    let floor = context.space.floor
    guard floor > 0, chains[packet.device]?.recent.contains(tail) == true else { return false }
    return packet.operations.allSatisfy { operation in
      author(of: operation.id) != nil || operation.base < floor && operation.id <= tail
    }
  }

  /// Whether a dependency that is not known was pruned, and is not one that is still to come: a
  /// device's identifiers ascend, and it lies before all that its chain remembers. Where a device
  /// makes them otherwise it is told that it was copied, which loses nothing.
  func isForgotten(_ dependency: OperationID, by chain: DeviceChain) -> Bool {
    guard context.space.floor > 0, chain.hasForgotten, let oldest = chain.recent.first
    else { return false }
    return dependency < oldest
  }
}
