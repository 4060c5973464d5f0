import FerryProtocol

/// What is to happen with a batch of packets, before any operation is looked into.
package struct IngestPlan: Sendable, Equatable {
  /// Where a packet comes from.
  package enum Source: Sendable, Hashable {
    /// Its place in the batch.
    case incoming(Int)
    case parked(ParkedKey)
  }

  /// Packets that are applied together, in the order of their chain: one that stands alone, or
  /// all those of a transaction.
  package struct Run: Sendable, Equatable {
    package let sources: [Source]
    /// The incoming packet that closed the chain.
    package let closer: Int
  }

  /// What an incoming packet is answered with.
  package enum Verdict: Sendable, Equatable {
    /// All its operations are in the history.
    case duplicate
    case refused(Problem)
    /// Whatever became of that packet, which is this one or its equal: applied in a run, or parked.
    case follows(Source)
  }

  package var runs: [Run] = []
  /// One for each incoming packet.
  package var verdicts: [Verdict] = []
  /// Incoming packets to park, by their places in the batch.
  package var parked: [Int] = []
  /// Parked packets that go: applied, overtaken or replaced.
  package var unparked: [ParkedKey] = []
  /// Chains as they are afterwards, where they moved; their `operations` is not counted on.
  package var chains: [DeviceID: DeviceChain] = [:]
  /// Who uses which device from now on, if that changes.
  package var owners: [DeviceID: Principal] = [:]
  /// Parked packets whose bodies the context lacks. Load them, their operations' history and
  /// records, and plan again.
  package var missing: [ParkedKey] = []
}
