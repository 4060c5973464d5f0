import FerryProtocol
import FerrySQLite

/// The chain of packets under the replica's device identifier, and its restart under another one
/// (SPEC.md §4).
///
/// A frozen packet keeps its merged operations, under each identifier and however often it is sent.
/// The server may know them already, from this device or from a copy of its file, and ignores a
/// known operation identifier. If the device merged them again, one operation could carry content
/// that the server then never reads.
extension ReplicaFile {
  /// Starts a chain under a new identifier, with packets that were frozen under the former one.
  ///
  /// - Parameter packets: in order; those after the last kept one.
  func beginChain(with packets: [PacketRow]) throws -> DeviceID {
    let device = try takeNewName()
    // Others may know all of this under the former identifier.
    try connection.execute(
      "UPDATE ferry_operations SET concurrent = 1 WHERE \(Self.isUnfrozen)")
    guard let first = packets.first, let last = packets.last else { return device }
    let move = try connection.statement(
      """
      UPDATE ferry_packets SET state = 'frozen', dependency = ?, first = NULL, last = NULL,
        clean = 0, applied = 0, history_hash_before = NULL, history_hash = NULL, timeline = NULL
      WHERE number = ?
      """)
    let meet = try connection.statement(
      """
      UPDATE ferry_operations SET concurrent = 2
      WHERE state = 0 AND concurrent = 0 AND seq BETWEEN ? AND ?
      """)
    var dependency: OperationID?
    for packet in packets {
      try move.run(dependency, packet.number)
      dependency = packet.tail
      try meet.run(packet.orders.lowerBound, packet.orders.upperBound)
    }
    try connection.run(
      "UPDATE ferry_replica SET tail = ?, chain_start = ?", last.tail, first.number - 1)
    return device
  }

  /// Whether the chain restarts with packets that were perhaps sent under a former identifier.
  func isChainSentAgain() throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_current_packets WHERE state <> 'acknowledged' AND dependency IS NULL
        AND EXISTS (SELECT 1 FROM ferry_former_names) LIMIT 1
      """)
  }

  private func takeNewName() throws -> DeviceID {
    try keepName()
    let device = newDevice(wallClock, random)
    try connection.run(
      """
      UPDATE ferry_replica SET device = ?, tail = NULL, chain_start = coalesce(
        (SELECT seq FROM sqlite_sequence WHERE name = 'ferry_packets'), 0)
      """, device)
    return device
  }
}
