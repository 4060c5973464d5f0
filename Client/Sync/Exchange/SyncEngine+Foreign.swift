import FerryProtocol

/// Packets rejected by a proxy instead of the server.
extension SyncEngine {
  /// Makes packets smaller, or quarantines the only transaction of a packet, so everything else is
  /// exchanged.
  ///
  /// - Throws: ``ForeignAnswer`` if even a small request does not get through: then the packet is
  ///   not the reason.
  func handle(
    _ answer: ForeignAnswer, ofPacket number: Int64, _ cut: PacketCut, _ api: SyncAPI,
    _ report: inout SyncReport
  ) async throws -> PacketCut {
    let found = try await thread.run { file in
      try file.packetFacts(number).map {
        ($0, try file.operations.transactionCount(ofPacket: number))
      }
    }
    guard let (facts, transactions) = found else { return cut }
    let decided =
      answer.isTooLarge
      ? cut.afterTooLarge(
        bytes: facts.bytes, operations: facts.operations, transactions: transactions,
        transactionBytes: facts.transactionBytes, partsMax: limits.bufferedPackets / 2)
      : cut.afterRefusal(transactions: transactions)
    switch decided {
    case .narrow(let smaller):
      try await thread.run { try $0.chain.reopen(packet: number) }
      if let bytes = smaller.bytesMax { shared.update(packetBytesMax: bytes) }
      return smaller
    case .quarantine:
      guard try await letsSmallRequestsThrough(api, facts.key) else { throw answer }
      let (code, detail) = (answer.refusalCode, answer.text)
      report.quarantined += try await thread.run {
        try $0.refusedOperations.removePacket(number, code: code, detail: detail)
      }
      return PacketCut(bytesMax: cut.bytesMax)
    }
  }

  /// Returns true if a request with a small body reaches the server.
  private func letsSmallRequestsThrough(_ api: SyncAPI, _ key: RecordKey) async throws -> Bool {
    do {
      _ = try await retrying { try await api.records([key]) }
      return true
    } catch is ForeignAnswer {
      return false
    }
  }
}

extension ForeignAnswer {
  /// The code of the quarantine entry.
  fileprivate var refusalCode: RefusalCode { isTooLarge ? .tooLargeForProxy : .refusedByProxy }
}

extension RefusalCode {
  /// A request with the transaction exceeds a proxy's limit. Not on the wire.
  static let tooLargeForProxy = RefusalCode(rawValue: "too_large_for_proxy")
  /// A proxy rejects requests with this transaction. Not on the wire.
  static let refusedByProxy = RefusalCode(rawValue: "refused_by_proxy")
}

/// Facts about a packet that cannot be sent.
struct PacketFacts: Sendable {
  /// The bytes of the packet, and of all operations of the packet's first transaction.
  var bytes: Int
  var transactionBytes: Int
  var operations: Int
  /// A record of the packet.
  var key: RecordKey
}

extension ReplicaFile {
  /// Returns the facts about a packet, or `nil` if no packet has this number.
  func packetFacts(_ number: Int64) throws -> PacketFacts? {
    guard let row = try packets.packet(number) else { return nil }
    let packet = try operations.packet(row, of: identity().device)
    guard let first = packet.operations.first else { return nil }
    let stored = try connection.first(
      """
      SELECT sum(coalesce(length(data), 0) + length(record) + 256) FROM ferry_pending
      WHERE grp = (SELECT grp FROM ferry_pending WHERE seq = ?)
      """, row.orders.lowerBound
    ) { Int($0.int64(0)) }
    let bytes = packet.encoded().count
    return PacketFacts(
      bytes: bytes, transactionBytes: stored ?? bytes,
      operations: packet.operations.count, key: first.key)
  }
}
