import FerryProtocol

/// The parts used by all handlers of requests: the store, whose failures become problems, and the
/// limits.
final class ServiceCore: Sendable {
  private let store: any SyncStore
  private let directory: SpaceDirectory
  let clock: ServiceClock
  let limits: Limits
  let quotas: Quotas
  let metrics: ServiceMetrics
  let log: ServiceLog

  init(_ parts: SyncService.Parts) {
    (store, clock) = (parts.store, parts.clock)
    directory = SpaceDirectory(store: parts.store, clock: parts.clock)
    (limits, quotas) = (parts.limits, parts.quotas)
    (metrics, log) = (parts.metrics, parts.log)
  }

  /// Calls the store; a failure goes to the log, and to the client as a problem. If there is no
  /// memory for the task's answer, it waits outside of the store, and calls again.
  func ask<T>(
    _ call: (any SyncStore) async throws(StoreError) -> T
  ) async throws(Problem) -> T {
    do throws(StoreError) {
      do throws(StoreError) {
        return try await call(store)
      } catch .needsMemory {
        guard await PageRoom.current?.wait() ?? false else { throw .noMemory }
        return try await call(store)
      }
    } catch {
      metrics.countStoreError()
      log.write(error)
      throw Problem(error)
    }
  }

  /// The work of the store in this process.
  var counts: StoreCounts { store.counts }

  // MARK: Spaces

  /// Returns a space, perhaps with an outdated head.
  func find(_ name: SpaceName) async throws(Problem) -> SpaceSummary {
    let space = try await ask { (_) async throws(StoreError) in try await directory.find(name) }
    guard let space else { throw .unknownSpace(name) }
    return space
  }

  /// Returns a space with the present head.
  func current(_ name: SpaceName) async throws(Problem) -> SpaceSummary {
    let space = try await ask { (store) async throws(StoreError) in
      try await store.space(named: name)
    }
    guard let space else { throw .unknownSpace(name) }
    return space
  }

  /// Returns the owners and names of devices, each device once.
  func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(Problem) -> [DeviceID: DeviceIdentity] {
    let wanted = Set(devices).sorted()
    if wanted.isEmpty { return [:] }
    let found = try await ask { (store) async throws(StoreError) in
      try await store.identities(of: wanted, in: space)
    }
    return Dictionary(found.map { ($0.device, $0) }) { first, _ in first }
  }

  /// Returns the space; it is made if it is not there and the principal may have one more.
  func makeSpace(
    _ name: SpaceName, by principal: Principal
  ) async throws(Problem) -> SpaceSummary {
    let (quota, mark) = (quotas.spaces, mark(principal))
    let space = try await ask { (store) async throws(StoreError) in
      try await store.createSpace(name, by: mark, quota: quota)
    }
    guard let space else {
      throw Problem(
        .storageQuota,
        "you have created \(quota) spaces, the limit of one user. Use one of them, or ask the "
          + "server's administrator")
    }
    return space
  }

  /// Returns a space as a caller with a role sees it, in JSON.
  func info(_ space: SpaceSummary, _ role: Role) -> [UInt8] {
    SpaceInfo(
      space: space.name, epoch: space.epoch, head: space.head, role: role,
      serverTime: clock.wall()
    ).encoded()
  }

  // MARK: Requests

  /// Reads a request's body within the limits.
  func read<Message>(
    _ body: [UInt8], _ decode: ([UInt8], Limits) throws(MalformedMessage) -> Message
  ) throws(Problem) -> Message {
    guard body.count <= limits.messageBytes else {
      throw Problem(
        .limitExceeded,
        "the message has \(body.count) bytes; \(limits.messageBytes) are allowed")
    }
    do {
      return try decode(body, limits)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
  }

  /// Returns the author of a change, for the audit log.
  func mark(_ principal: Principal) -> AuditMark { AuditMark(principal, at: clock.wall()) }
}

extension Problem {
  static func unknownSpace(_ name: SpaceName) -> Problem {
    Problem(
      .unknownSpace, "there is no space \(name); an admin creates it with PUT /v1/spaces/\(name)")
  }
}
