import FerryHTTPServer
import FerryProtocol

/// Receives packets.
struct PacketHandler: Sendable {
  let core: ServiceCore
  let access: RequestAccess
  let committer: PacketCommitter
  let observer: DeviceObserver

  func receive(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    var space: Int64?
    do throws(Problem) {
      return try await commit(&context, name, admission, into: &space)
    } catch {
      // Only the transaction looks whether the server is still open.
      if admission.assumesOpenServer {
        _ = try await access.admit(context.request, .packets, to: name, need: .writer)
      }
      if let space { observer.recordRejection(error, context, space) }
      throw error
    }
  }

  /// - Parameter found: Gets the space, once it is known.
  private func commit(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission,
    into found: inout Int64?
  ) async throws(Problem) -> HTTPResponse {
    let version = try context.protocolVersion()
    let query = context.request.query
    let cursor = try ChangesQuery.cursor { query[$0] }.get()
    let body = context.request.body
    let space = try await core.find(name)
    found = space.id
    let packet = try core.read(body, Packet.init(decoding:limits:))
    context.device = packet.device
    let answer = try await committer.commit(
      IncomingPacket(
        packet, byteCount: body.count, principal: admission.principal, role: admission.role,
        protocolVersion: version, cursor: cursor,
        needsOpenServer: admission.assumesOpenServer),
      into: space.id)
    observer.recordAnswer(answer, context, space.id, cursor: cursor)
    let status = answer.receipt.status == .buffered ? 202 : 200
    return .json(answer.encoded(quoting: core.limits.pageBytes), status: status)
  }
}
