import FerryProtocol

/// How much each principal has buffered in a space, of all its devices, while a plan is made.
struct BufferShares {
  private let quotas: Quotas
  private var usage: [Principal: Usage]

  /// - Parameter plan: The plan so far: its devices have owners, and the packets that go are known.
  init(_ context: IngestContext, _ plan: IngestPlan) {
    quotas = context.quotas
    var ledger = UsageLedger(context)
    ledger.move(plan.owners, in: context)
    for key in plan.unbuffered {
      let packet = context.buffered.first { $0.key == key }
      let owner = plan.owners[key.device] ?? context.owners[key.device] ?? .anonymous
      ledger.unbuffer(packet?.byteCount ?? 0, of: owner)
    }
    usage = ledger.usage
  }

  mutating func add(_ byteCount: Int, of owner: Principal) {
    usage[owner.account, default: Usage()].add(packets: 1, bytes: Int64(byteCount))
  }

  /// Returns the reason why another packet has no room; `nil` if it has.
  func overflow(_ byteCount: Int, of owner: Principal) -> Problem? {
    let own = usage[owner.account] ?? Usage()
    guard
      own.packets >= quotas.bufferedPackets
        || own.packetBytes + Int64(byteCount) > quotas.bufferedBytes
    else { return nil }
    return Problem(
      .bufferFull,
      """
      \(own.packets) packets of your devices are buffered; the limit of one user is \
      \(quotas.bufferedPackets) packets and \(quotas.bufferedBytes) bytes. First send the packets \
      that they wait for
      """)
  }
}
