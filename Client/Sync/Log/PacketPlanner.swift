import FerryProtocol

/// Cuts pending operations into packets of whole local transactions, as many as fit after merging.
/// A larger transaction is sent in several packets; the server applies them together.
struct PacketPlanner {
  /// Operations to send as one packet.
  struct Plan: Equatable {
    /// The merged operations; empty if they cancelled each other out.
    var operations: [SyncOperation]
    /// The pending rows behind the operations.
    var orders: ClosedRange<Int64>
    /// True if operations on one record were merged.
    var isMerged: Bool
    /// True if the next packet has more of the same transaction.
    var continues: Bool
    /// The pending rows kept separate by merging from earlier ones on the same records.
    var apart: [Int64] = []
  }

  private let limits: Limits
  /// The most groups in a packet.
  private let groupsMax: Int
  private var groups = 0
  /// The records that the batches of the taken groups match.
  private var matches = 0
  private var merger: OperationMerger
  private var orders: ClosedRange<Int64>?
  private var largeGroup: [PendingOperation] = []
  private var apart: [Int64] = []

  /// Creates an empty planner.
  ///
  /// - Parameter schema: the policies in it decide how operations are merged.
  init(limits: Limits, schema: SpaceSchema = .empty, groupsMax: Int = .max) {
    self.limits = limits
    merger = OperationMerger(limits: limits, schema: schema)
    self.groupsMax = groupsMax
  }

  /// Returns true if a group still fits beside the groups added so far.
  func fits(_ group: [PendingOperation]) -> Bool {
    orders == nil
      || groups < groupsMax && merger.count + group.count <= limits.operationsPerPacket
        && merger.bytes + Self.bytes(of: group) <= limits.packetBytesTarget
        && matches + Self.matches(of: group) <= limits.batchRecords
  }

  /// Adds one whole group. Call ``fits(_:)`` first.
  mutating func add(_ group: [PendingOperation]) {
    guard let first = group.first?.order, let last = group.last?.order else { return }
    if orders == nil { largeGroup = group }
    groups += 1
    matches += Self.matches(of: group)
    for pending in group where merger.add(pending.operation, isConcurrent: pending.isConcurrent) {
      apart.append(pending.order)
    }
    orders = (orders?.lowerBound ?? first)...last
  }

  /// Returns the packets of the added groups: one, unless a single group is larger than a packet.
  func plans() -> [Plan] {
    guard let orders else { return [] }
    if merger.count <= limits.operationsPerPacket && merger.bytes <= limits.packetBytesTarget
      && matches <= limits.batchRecords
    {
      return [
        Plan(
          operations: merger.operations, orders: orders, isMerged: true, continues: false,
          apart: apart)
      ]
    }
    return split()
  }

  /// Cuts one large group wherever a packet is full.
  private func split() -> [Plan] {
    var plans: [Plan] = []
    var run: [PendingOperation] = []
    var runBytes = 0
    var runMatches = 0
    func close(continues: Bool) {
      guard let first = run.first?.order, let last = run.last?.order else { return }
      plans.append(
        Plan(
          operations: run.map(\.operation), orders: first...last, isMerged: false,
          continues: continues))
      run = []
      (runBytes, runMatches) = (0, 0)
    }
    for pending in largeGroup {
      let size = pending.operation.packetBytes
      if run.count == limits.operationsPerPacket
        || !run.isEmpty
          && (runBytes + size > limits.packetBytesTarget
            || runMatches + pending.matches > limits.batchRecords)
      {
        close(continues: true)
      }
      run.append(pending)
      runBytes += size
      runMatches += pending.matches
    }
    close(continues: false)
    return plans
  }

  private static func bytes(of group: [PendingOperation]) -> Int {
    group.reduce(0) { $0 + $1.operation.packetBytes }
  }

  private static func matches(of group: [PendingOperation]) -> Int {
    group.reduce(0) { $0 + $1.matches }
  }
}
