import FerryHTTPServer
import FerryPlatform
import FerryProtocol

/// The memory of answers while they are built.
struct AnswerMemory: Sendable {
  let budget: MemoryBudget
  let limits: Limits

  /// Builds an answer whose store calls take memory of the budget first.
  func run(
    _ size: AnswerSize, _ context: RequestContext,
    _ build: () async throws(Problem) -> HTTPResponse
  ) async throws(Problem) -> HTTPResponse {
    guard let bytes = size.bytes(limits) else { return try await build() }
    let room = PageRoom(budget, bytes: bytes, account: context.principal?.memoryAccount)
    let built = await room.run { () async -> Result<HTTPResponse, Problem> in
      do throws(Problem) {
        return .success(try await build())
      } catch {
        return .failure(error)
      }
    }
    var answer = try built.get()
    answer.work = room.passOn()
    return answer
  }

  /// Waits for memory for work on content, a limited time.
  func grant(_ bytes: Int, _ context: RequestContext) async throws(Problem) -> MemoryGrant {
    let account = context.principal?.memoryAccount
    guard let grant = await budget.grant(bytes, account: account) else {
      throw Problem(StoreError.noMemory)
    }
    return grant
  }
}

extension StoreError {
  static let noMemory = StoreError.busy("the memory of the server is in use")
}
