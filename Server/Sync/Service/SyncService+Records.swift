import FerryHTTPServer
import FerryProtocol

extension SyncService {
  /// Returns the whole state of the records that the body names.
  func records(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let wanted = try read(context.request.body, RecordsRequest.init(decoding:limits:))
    let space = try await find(name)
    let (store, now) = (parts.store, parts.clock.wall())
    return try await page(context) { room async throws(StoreError) in
      try await store.records(wanted.keys, in: space.id, now: now, room: room)
    }.answer
  }

  /// Builds a page with memory of the budget. If there is none, waits for it outside of the store.
  func page(
    _ context: RequestContext,
    _ build: (PageRoom) async throws(StoreError) -> Result<[UInt8], Problem>
  ) async throws(Problem) -> (answer: HTTPResponse, bytes: [UInt8]) {
    let room = PageRoom(
      parts.memory, parts.limits, account: context.principal?.memoryAccount)
    let page = try await ask { () async throws(StoreError) in
      do throws(StoreError) {
        return try await build(room)
      } catch .needsMemory {
        guard await room.wait() else { throw .busy("the memory of the server is in use") }
        return try await build(room)
      }
    }.get()
    var answer = HTTPResponse.json(page)
    answer.work = room.passOn()
    return (answer, page)
  }
}
