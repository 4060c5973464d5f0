import FerryNetworking
import Synchronization

/// Responds to one request after another by a script, and records the requests.
final class ScriptedTransport: Transport {
  typealias Answer = Result<TransportResponse, TransportError>

  private struct State {
    var answers: [Answer]
    var requests: [TransportRequest] = []
    var streamsLeft = 0
  }

  private let state: Mutex<State>

  init(_ answers: Answer...) { state = Mutex(State(answers: answers)) }

  var requests: [TransportRequest] { state.withLock { $0.requests } }
  /// How many of the streams given out were ended, by their end or before.
  var streamsLeft: Int { state.withLock { $0.streamsLeft } }

  func send(
    _ request: TransportRequest
  ) async throws(TransportError) -> TransportResponse {
    try state.withLock { state -> Answer in
      state.requests.append(request)
      return state.answers.isEmpty
        ? .failure(TransportError(.other, "nothing more was expected"))
        : state.answers.removeFirst()
    }.get()
  }

  func stream(
    _ request: TransportRequest
  ) async throws(TransportError) -> TransportStream {
    let response = try await send(request)
    let parts = Mutex([response.body].filter { !$0.isEmpty })
    let isLeft = Mutex(false)
    let body = TransportBody(
      next: { () throws(TransportError) in parts.withLock { $0.popLast() } },
      cancel: { [self] in
        let isFirst = isLeft.withLock { isLeft in
          defer { isLeft = true }
          return !isLeft
        }
        if isFirst { state.withLock { $0.streamsLeft += 1 } }
      })
    return TransportStream(status: response.status, headers: response.headers, body: body)
  }
}

extension ScriptedTransport.Answer {
  static func answer(
    _ status: Int, _ headers: TransportHeaders = [:], _ body: String = ""
  ) -> Self {
    .success(TransportResponse(status: status, headers: headers, body: Array(body.utf8)))
  }

  static func error(_ kind: TransportError.Kind) -> Self {
    .failure(TransportError(kind, "\(kind)"))
  }
}

/// Surroundings in which no time passes, with records of the requested pauses.
final class StillSurroundings: Sendable {
  private let state = Mutex<[Duration]>([])

  /// How long was waited, in order.
  var pauses: [Duration] { state.withLock { $0 } }

  var surroundings: NetworkSurroundings {
    NetworkSurroundings(
      now: { 784_111_777 }, random: { 1 << 63 },
      sleep: { [self] delay in
        state.withLock { $0.append(delay) }
        try Task.checkCancellation()
      })
  }
}
