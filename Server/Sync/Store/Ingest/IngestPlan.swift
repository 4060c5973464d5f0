import FerryProtocol

/// The decisions about a batch of packets, before any operation is examined.
package struct IngestPlan: Sendable, Equatable {
  /// The origin of a packet.
  package enum Source: Sendable, Hashable {
    /// The position in the batch.
    case incoming(Int)
    case buffered(BufferedKey)
  }

  /// Packets applied together, in the order of their chain: a single packet, or all packets of a
  /// transaction.
  package struct Run: Sendable, Equatable {
    package let sources: [Source]
    /// The incoming packet that closed the chain.
    package let closer: Int
  }

  /// The answer for an incoming packet.
  package enum Verdict: Sendable, Equatable {
    /// All operations are in the history.
    case duplicate
    case refused(Problem)
    /// The same answer as for this packet or an equal one: applied in a run, or buffered.
    case follows(Source)
  }

  package var runs: [Run] = []
  /// One for each incoming packet.
  package var verdicts: [Verdict] = []
  /// Indexes in the batch of the incoming packets to buffer.
  package var buffered: [Int] = []
  /// Buffered packets to remove: applied, overtaken or replaced.
  package var unbuffered: [BufferedKey] = []
  /// Chains after the batch, if they moved; their `operations` is not reliable.
  package var chains: [DeviceID: DeviceChain] = [:]
  /// The new principals of devices, where they changed.
  package var owners: [DeviceID: Principal] = [:]
  /// Buffered packets whose bodies the context lacks. Load them, their operations' history and
  /// records, and plan again.
  package var missing: [BufferedKey] = []
}
