import FerryProtocol

/// Data missing for a decision about a batch.
package enum IngestNeed: Sendable, Equatable {
  /// Bodies of buffered packets, with the entries of the history and the records for their
  /// operations.
  case bodies([BufferedKey])
  /// The holders of these unique keys, if any.
  case holders([UniqueClaim])
  /// The stored records for the matcher, shown one by one; then it finishes.
  case matches(BatchMatcher)
  /// No data: the decision starts from scratch, without a refused packet or with more keys looked
  /// up.
  case nothing
}

extension Ingest {
  /// Plans a batch and merges it. If a packet holds operations that can never be applied, the whole
  /// batch starts from scratch without this packet, so nothing of it remains. Each time one more
  /// packet or run of packets is left out.
  ///
  /// - Parameters:
  ///   - start: The results of an attempt that was rolled back.
  ///   - slices: Loads and writes states of a sliced context. Then `IngestRestart` may be thrown:
  ///     roll back, and decide again from it.
  ///   - load: Loads missing data into the context.
  static func decide(
    _ packets: [IncomingPacket], in context: inout IngestContext,
    from start: IngestRestart = IngestRestart(), slices: (any IngestSlices)? = nil,
    load: (IngestNeed, inout IngestContext) throws -> Void
  ) throws -> IngestEffects {
    context.refused.merge(start.refused) { first, _ in first }
    if !start.claims.isEmpty { try context.lookUp(start.claims, load) }
    while true {
      let plan = plan(packets, in: context)
      if !plan.missing.isEmpty {
        try load(.bodies(plan.missing), &context)
        continue
      }
      let matcher = BatchMatcher(plan, of: packets, in: context)
      if !matcher.isEmpty {
        // Operations that can never be applied are known before any evaluation.
        let refused = refusedUnmatched(plan, packets, in: context)
        if refused.isEmpty {
          try load(.matches(matcher), &context)
        } else {
          context.refused.merge(refused) { first, _ in first }
        }
        continue
      }
      if context.schema != nil {
        let bodies = context.bodies.sorted { $0.key.tail < $1.key.tail }.map(\.value)
        let claims = context.claimsToLookUp(for: bodies + packets.map(\.packet))
        if !claims.isEmpty { try context.lookUp(claims, load) }
      }
      let effects = try apply(plan, to: packets, in: context, slices: slices)
      if effects.missingClaims.isEmpty && effects.refused.isEmpty { return effects }
      if effects.missingClaims.isEmpty {
        context.refused.merge(effects.refused) { first, _ in first }
      } else {
        try context.lookUp(effects.missingClaims, load)
      }
      try load(.nothing, &context)
    }
  }
}

extension Ingest {
  /// Returns the runs with batches and with operations that can never be applied, independent of
  /// the stored data.
  private static func refusedUnmatched(
    _ plan: IngestPlan, _ packets: [IncomingPacket], in context: IngestContext
  ) -> [IngestPlan.Source: Problem] {
    let check = OperationCheck(schema: context.schema)
    var refused: [IngestPlan.Source: Problem] = [:]
    for run in plan.runs {
      var refusals: [Refusal] = []
      var hasBatches = false
      for source in run.sources {
        let (packet, role): (Packet?, Role) =
          switch source {
          case .incoming(let index): (packets[index].packet, packets[index].role)
          case .buffered(let key):
            (
              context.bodies[key], context.buffered.first { $0.key == key }?.role ?? .reader
            )
          }
        let isAuthority = packet?.isAuthority(role) ?? false
        for operation in packet?.operations ?? [] where context.known[operation.id] == nil {
          hasBatches = hasBatches || operation.batch != nil
          let refusal = check.refusal(of: operation, by: role, isAuthority: isAuthority)
          if let refusal { refusals.append(refusal) }
        }
      }
      guard hasBatches, !refusals.isEmpty else { continue }
      for source in run.sources { refused[source] = .operationRefused(refusals) }
    }
    return refused
  }
}

extension IngestContext {
  fileprivate mutating func lookUp(
    _ claims: [UniqueClaim], _ load: (IngestNeed, inout IngestContext) throws -> Void
  ) rethrows {
    for claim in claims { holders.updateValue(nil, forKey: claim) }
    try load(.holders(claims), &self)
  }
}
