import FerryHTTPServer
import FerryProtocol

/// Observes the requests of devices, for administrators.
struct DeviceObserver: Sendable {
  let inspection: InspectionKeeper
  let clock: ServiceClock

  /// Stored bytes of a client's name.
  private static let clientBytes = 200

  /// Records a device's request for a page. The device has applied all changes up to the cursor,
  /// and may be killed before it applies the page (S1.13).
  func recordPull(_ cursor: Cursor?, _ context: RequestContext, _ space: Int64) {
    guard let sighting = sighting(context, space, reached: cursor?.applied ?? 0) else { return }
    inspection.update { $0.recordPull(sighting) }
  }

  /// Records an accepted packet.
  func recordAnswer(
    _ answer: PacketAnswer, _ context: RequestContext, _ space: Int64, cursor: Cursor?
  ) {
    guard let sighting = sighting(context, space, reached: nil) else { return }
    var activity = ActivityCount(at: clock.wall())
    let applied = ([answer.receipt] + answer.released).filter { $0.status == .applied }
    for receipt in applied {
      activity.operations += Int64(receipt.outcomes.count)
      activity.conflicts += Int64(receipt.outcomes.reduce(0) { $0 + $1.conflicts.count })
    }
    let places = applied.compactMap(\.sequences)
    let sequences = places.map(\.lowerBound).min().flatMap { low in
      places.map(\.upperBound).max().map { low...$0 }
    }
    inspection.update { [activity] ledger in
      ledger.recordPush(sighting, sequences: sequences, known: cursor?.applied)
      if activity.operations > 0 { ledger.count(activity, in: space) }
    }
  }

  /// Records a refused packet. Faults of the server are in the log.
  func recordRejection(_ problem: Problem, _ context: RequestContext, _ space: Int64) {
    if [.unavailable, .internalError, .rateLimited].contains(problem.code) { return }
    let now = clock.wall()
    let principal = context.principal ?? .anonymous
    let rejections = Rejection.list(
      problem, device: context.device, principal: principal, at: now)
    let sighting = sighting(context, space, reached: nil)
    inspection.update { ledger in
      if let sighting { ledger.recordPush(sighting, sequences: nil, known: nil) }
      for rejection in rejections { ledger.record(rejection, in: space) }
      ledger.count(ActivityCount(at: now, rejected: 1), in: space)
    }
  }

  private func sighting(
    _ context: RequestContext, _ space: Int64, reached: SequenceNumber?
  ) -> DeviceSighting? {
    guard let device = context.device else { return nil }
    let headers = context.request.headers
    let parts = [
      headers["User-Agent"], headers[ProtocolVersion.header].map { "protocol \($0)" },
    ].compactMap { $0 }
    let client = String(
      decoding: parts.joined(separator: ", ").utf8.prefix(Self.clientBytes), as: UTF8.self)
    return DeviceSighting(
      space: space, device: device, principal: context.principal ?? .anonymous,
      at: clock.wall(), reached: reached, client: client.isEmpty ? nil : client)
  }
}

extension Rejection {
  /// Listed operations of one packet.
  private static let listedMax = 20

  /// Returns the refused operations of a packet, or the packet if it was refused whole.
  static func list(
    _ problem: Problem, device: DeviceID?, principal: Principal, at now: Int64
  ) -> [Rejection] {
    if problem.refusals.isEmpty {
      let sender = device?.description ?? "-"
      return [
        Rejection(
          subject: "packet \(problem.code.rawValue) \(sender) \(principal)", firstAt: now,
          lastAt: now, code: problem.code.rawValue, detail: problem.detail,
          principal: principal.id, device: device)
      ]
    }
    return problem.refusals.prefix(listedMax).map { refusal in
      Rejection(
        subject: "operation \(refusal.operation)", firstAt: now, lastAt: now,
        code: refusal.code.rawValue, detail: refusal.detail, principal: principal.id,
        device: device, key: RecordKey(table: refusal.table, record: refusal.record))
    }
  }
}
