import FerryProtocol

/// Finds the stored records that the batch operations of a plan match, while a store streams the
/// records of their tables: only what matches is kept, and no more of it than the limits allow.
package struct BatchMatcher: Sendable, Equatable {
  private struct Search: Sendable, Equatable {
    let operation: Operation
    let predicate: Predicate
    /// The packet, by its place among the plan's.
    let packet: Int
    /// The packets that are applied together with it.
    let run: [IngestPlan.Source]
    var keys: [RecordKey] = []
  }

  /// What the batches of one packet have matched together.
  private struct Tally: Sendable, Equatable {
    var records = 0
    var bytes = 0
  }

  private var searches: [Search] = []
  private var tallies: [Int: Tally] = [:]
  private var states: [RecordKey: RecordState] = [:]
  private let limits: Limits

  /// Looks for those batch operations of the plan whose matches the context lacks.
  init(_ plan: IngestPlan, of packets: [IncomingPacket], in context: IngestContext) {
    limits = context.limits
    var place = 0
    for run in plan.runs {
      for source in run.sources {
        let packet: Packet? =
          switch source {
          case .incoming(let index): packets[index].packet
          case .parked(let key): context.bodies[key]
          }
        place += 1
        for operation in packet?.operations ?? [] {
          guard let batch = operation.batch, context.known[operation.id] == nil,
            context.matches[operation.id] == nil
          else { continue }
          searches.append(
            Search(
              operation: operation, predicate: batch.predicate, packet: place, run: run.sources))
        }
      }
    }
  }

  /// Whether there is nothing to look for.
  var isEmpty: Bool { searches.isEmpty }

  /// The tables whose records have to be shown, each once.
  package var tables: [String] {
    Set(searches.map(\.operation.key)).sorted().map(\.table)
  }

  /// Takes one record of a table as it is stored.
  package mutating func take(
    _ key: RecordKey, _ state: UnsafeRawBufferPointer
  ) throws(MalformedMessage) {
    let decoded = try RecordState(decoding: state, limits: .stored)
    for index in searches.indices
    where searches[index].operation.key.table.utf8.elementsEqual(key.table.utf8)
      && searches[index].predicate.matches(record: key.record, decoded)
    {
      var tally = tallies[searches[index].packet] ?? Tally()
      tally.records += 1
      tally.bytes += state.count
      tallies[searches[index].packet] = tally
      guard !isExcessive(tally) else { continue }
      searches[index].keys.append(key)
      states[key] = decoded
    }
  }

  /// Hands over what was found. Packets whose batches match too much are refused.
  package consuming func finish(into context: inout IngestContext) {
    for search in searches {
      if let tally = tallies[search.packet], isExcessive(tally) {
        refuse(search, in: &context)
        continue
      }
      context.matches[search.operation.id] = search.keys
      for key in search.keys where context.records[key] == nil {
        context.records[key] = states[key]
      }
    }
  }

  private func refuse(_ search: Search, in context: inout IngestContext) {
    let refusals = searches.filter { $0.packet == search.packet }.map { other in
      Refusal(
        other.operation, .invalidPredicate,
        """
        the batches of a packet match at most \(limits.batchRecords) records and \
        \(limits.batchBytes >> 20) MiB of them: take a narrower predicate
        """)
    }
    for source in search.run where context.refused[source] == nil {
      context.refused[source] = .operationRefused(refusals)
    }
  }

  private func isExcessive(_ tally: Tally) -> Bool {
    tally.records > limits.batchRecords || tally.bytes > limits.batchBytes
  }
}
