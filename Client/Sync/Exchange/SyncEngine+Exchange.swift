import FerryProtocol

/// The driver of an ``Exchange``: requests run beside each other, and steps run on the replica's thread.
extension SyncEngine {
  /// The end of a request.
  private struct Reply: Sendable {
    let request: Exchange.Request
    let answer: ExchangeSteps.Answer
  }

  /// Exchanges changes with the server until the round is over.
  ///
  /// - Parameter newest: gets the newest operation at the beginning, if the round sends.
  func exchange(
    _ kind: Exchange.Kind, _ newest: inout Int64?, _ progress: @escaping Progress
  ) async throws -> ExchangeSteps.Outcome {
    let begun = steps(of: kind, progress)
    // Each visit of the thread waits for a turn there: the first one reads all that the round begins with.
    let (api, order, steps, next) = try await thread.run {
      file -> (SyncAPI, Int64?, ExchangeSteps, Exchange.Next) in
      let api = self.api(of: try access(file))
      let order = try kind.sends ? file.queue.newestOrder() : nil
      var steps = begun
      let next = try steps.run(steps.begin().steps, on: file, api)
      return (api, order, steps, next)
    }
    newest = order
    guard let outcome = try await perform(next, steps, api).outcome else {
      throw ReplicaError.cancelled
    }
    return outcome
  }

  /// Pulls as a part of other work.
  func catchUp(_ api: SyncAPI, _ progress: @escaping Progress) async throws {
    var steps = steps(of: .catchUp, progress)
    _ = try await perform(steps.begin(), steps, api)
  }

  private func steps(of kind: Exchange.Kind, _ progress: @escaping Progress) -> ExchangeSteps {
    let exchange = Exchange(
      kind,
      Exchange.Options(
        packetsInFlight: options.packetsInFlight, partsMax: limits.bufferedPackets / 2,
        packetBytesMax: shared.packetBytesMax))
    return ExchangeSteps(exchange, surroundings.firstLists, progress)
  }

  /// Performs actions, and all that follow them. Returns the steps with their results.
  private func perform(
    _ first: Exchange.Next, _ begun: ExchangeSteps, _ api: SyncAPI
  ) async throws -> ExchangeSteps {
    var steps = begun
    do {
      try await perform(first, &steps, api)
      return steps
    } catch {
      // The copies would keep their room. If this fails, the next sync drops them.
      if steps.exchange.isFilling, !ReplicaError(error).isBusy {
        try? await thread.run { try $0.firstList.end() }
      }
      throw error
    }
  }

  private func perform(
    _ first: Exchange.Next, _ run: inout ExchangeSteps, _ api: SyncAPI
  ) async throws {
    var (next, steps) = (first, run)
    defer { run = steps }
    try await withThrowingTaskGroup(of: Reply.self) { group in
      while true {
        for request in next.requests {
          let work = work(for: request, steps, api)
          group.addTask { try await reply(to: request, work) }
        }
        if !next.steps.isEmpty {
          (steps, next) = try await visit(next.steps, steps, api)
        } else if let reply = try await group.next() {
          next = steps.handle(reply.answer, to: reply.request)
        } else {
          return
        }
      }
    }
  }

  /// Runs steps on the replica's thread. A cancelled task ends the application of a list.
  private func visit(
    _ first: [Exchange.Step], _ steps: ExchangeSteps, _ api: SyncAPI
  ) async throws -> (ExchangeSteps, Exchange.Next) {
    let body: @Sendable (ReplicaFile) throws -> (ExchangeSteps, Exchange.Next) = { file in
      var steps = steps
      let next = try steps.run(first, on: file, api)
      return (steps, next)
    }
    let result =
      first.contains(where: \.isLong)
      ? try await thread.runUntilCancelled(body) : try await thread.run(body)
    if let bytes = result.0.exchange.packetBytesMax { shared.update(packetBytesMax: bytes) }
    return result
  }

  // MARK: Requests

  private func reply(
    to request: Exchange.Request, _ work: @Sendable () async throws -> ExchangeSteps.Answer
  ) async throws -> Reply {
    do {
      return Reply(request: request, answer: try await work())
    } catch let answer as ForeignAnswer {
      return Reply(request: request, answer: .event(.failed(request, .foreign(answer))))
    } catch let error where !(error is CancellationError) {
      return Reply(request: request, answer: .event(.failed(request, .error(ReplicaError(error)))))
    }
  }

  /// Returns the work for a request, with its retries after temporary failures.
  private func work(
    for request: Exchange.Request, _ steps: ExchangeSteps, _ api: SyncAPI
  ) -> @Sendable () async throws -> ExchangeSteps.Answer {
    switch request {
    case .page(let cursor, let names):
      return { [options] in
        .page(
          try await retrying {
            try await api.changes(cursor: cursor, limit: options.pageSize, names: names)
          })
      }
    case .records(let keys):
      return { .records(try await retrying { try await api.records(keys) }) }
    case .createSpace:
      return {
        _ = try await retrying { try await api.space(create: true) }
        return .event(.spaceCreated)
      }
    case .packet(let number):
      guard let packet = steps.packet(number) else { return { throw ReplicaError.cancelled } }
      return { .packet(try await send(packet, api)) }
    case .probe(let key):
      return {
        _ = try await retrying { try await api.records([key]) }
        return .event(.probed)
      }
    case .compare:
      let tables = steps.tables
      return { .compared(try await compare(tables, api)) }
    case .names:
      guard let names = steps.outcome?.names else { return { .event(.named) } }
      return {
        await exchangeNames(names, api)
        return .event(.named)
      }
    case .pause(let pause):
      return {
        if pause > .zero { try await surroundings.sleep(pause) }
        return .event(.paused)
      }
    }
  }

  private func send(_ next: PacketToSend, _ api: SyncAPI) async throws -> PacketAnswer {
    let answer = try await retrying { try await api.push(next.packet, cursor: next.cursor) }
    guard answer.receipt.tail == next.packet.operations.last?.id else {
      throw ReplicaError.unexpectedAnswer(status: 200, "a receipt for another packet")
    }
    return answer
  }
}

extension Exchange.Step {
  /// True if the step may take long, and a cancelled task ends it.
  fileprivate var isLong: Bool {
    switch self {
    case .apply, .fillSlice: true
    default: false
    }
  }
}
