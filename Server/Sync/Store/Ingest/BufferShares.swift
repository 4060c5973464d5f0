import FerryProtocol

/// The buffered use of each principal, and of all of them, in a space, of all devices, while a plan
/// is made.
struct BufferShares {
  private let quotas: Quotas
  private var ledger: UsageLedger

  /// - Parameter plan: The plan so far: its devices have owners, and the packets to apply are
  ///   known.
  init(_ context: IngestContext, _ plan: IngestPlan) {
    quotas = context.quotas
    ledger = UsageLedger(context)
    ledger.move(plan.owners, in: context)
    for key in plan.unbuffered {
      let packet = context.buffered.first { $0.key == key }
      let owner = plan.owners[key.device] ?? context.owners[key.device] ?? .anonymous
      ledger.unbuffer(packet?.byteCount ?? 0, of: owner)
    }
  }

  mutating func add(_ byteCount: Int, of owner: Principal) { ledger.buffer(byteCount, of: owner) }

  /// Returns the reason why another packet has no room; `nil` if it has.
  func overflow(_ byteCount: Int, of owner: Principal) -> Problem? {
    let own = ledger.usage[owner.account] ?? Usage()
    if own.packets >= quotas.bufferedPackets
      || own.packetBytes + Int64(byteCount) > quotas.bufferedBytes
    {
      return Problem(
        .bufferFull,
        """
        \(own.packets) packets of your devices are buffered; the limit of one user is \
        \(quotas.bufferedPackets) packets and \(quotas.bufferedBytes) bytes. First send the packets \
        that they wait for
        """)
    }
    let all = ledger.total
    if Quotas.admits(1, own: own.packets, all: all.packets, limit: quotas.spaceBufferedPackets),
      Quotas.admits(
        Int64(byteCount), own: own.packetBytes, all: all.packetBytes,
        limit: quotas.spaceBufferedBytes)
    {
      return nil
    }
    return Problem(
      .bufferFull,
      """
      \(all.packets) packets of all users are buffered in this space; the limit is \
      \(quotas.spaceBufferedPackets) packets and \(quotas.spaceBufferedBytes) bytes. First send the \
      packets that yours wait for
      """)
  }
}
