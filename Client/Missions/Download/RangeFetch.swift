import FerryNetworking

/// Makes the requests of one connection one after another, by the session's decisions.
struct RangeFetch: Sendable {
  let session: DownloadSession
  let open: DownloadOpening
  let retry: RetryPolicy

  /// Works until no part is missing, or the download has failed.
  func run() async {
    do throws(DownloadError) {
      var patience = Patience(retry)
      var next = await session.next()
      while var range = next {
        let end = try await fetch(&range)
        if case .again(let error, let wish) = end {
          await session.failed(error)
          try await rest(&patience, error, wish)
        }
        // Until here the range belonged to this connection, so no other has the same failure.
        next = try await session.next(after: range)
      }
    } catch {
      await session.fail(Task.isCancelled ? .cancelled : error)
    }
  }

  private func rest(
    _ patience: inout Patience, _ error: DownloadError, _ wish: Duration?
  ) async throws(DownloadError) {
    let random = session.surroundings.random()
    let delay = patience.delay(await session.highest, retryAfter: wish, random: random)
    guard let delay else { throw error }
    do {
      try await session.surroundings.sleep(delay)
    } catch {
      throw .cancelled
    }
  }

  private func fetch(_ range: inout FetchRange) async throws(DownloadError) -> FetchEnd {
    let ask = await session.ask(range)
    let answer: TransportStream
    do throws(TransportError) {
      answer = try await open(session.job.source, ask.headers)
    } catch {
      return try end(of: error)
    }
    let head = AnswerHead(status: answer.status, headers: answer.headers)
    switch try await session.judge(head, to: ask, &range) {
    case .take(let bytes):
      return try await write(answer.body, bytes, for: range, hasLength: head.length != nil)
    case .end(let end): return end
    }
  }

  /// Writes the body to the right place in the file, and hashes it on the way.
  private func write(
    _ body: TransportBody, _ bytes: Range<Int64>, for request: FetchRange, hasLength: Bool
  ) async throws(DownloadError) -> FetchEnd {
    let chunkSize = session.layout.chunkSize
    var intake = BodyIntake(bytes, size: session.size, chunkSize: chunkSize)
    let begun = bytes.lowerBound / chunkSize * chunkSize..<bytes.lowerBound
    var hash = try await session.rehash(begun)
    var isWhole = begun.isEmpty
    var parts = body.makeAsyncIterator()
    while !intake.isDone {
      let part: [UInt8]?
      do throws(TransportError) {
        part = try await parts.next()
      } catch {
        return try end(of: error)
      }
      guard let part else {
        return .again(
          DownloadError(.offline, "the server's answer ended too early"), after: nil)
      }
      for piece in intake.consume(part.count) {
        try await write(part, piece, for: request, &hash)
        guard piece.endsChunk else { continue }
        let facts = hash.finish()
        hash = session.digest()
        if await session.wants(piece.chunk, by: request) {
          try await session.checked(piece.chunk, facts, isWhole: isWhole)
        }
        isWhole = true
      }
    }
    // A completely read body frees its connection for the next request.
    if hasLength { _ = try? await parts.next() }
    return .done
  }

  private func write(
    _ part: [UInt8], _ piece: BodyIntake.Piece, for request: FetchRange,
    _ hash: inout ContentDigest
  ) async throws(DownloadError) {
    guard await session.wants(piece.chunk, by: request) else {
      return await session.received(piece.range.count, piece.chunk, kept: 0)
    }
    hash.update(part, piece.range)
    let start = Int64(piece.chunk) * session.layout.chunkSize
    let kept = piece.offset + Int64(piece.range.count) - start
    try await session.file.write(
      part, piece.range, at: piece.offset, chunk: piece.chunk, count: kept)
    await session.received(piece.range.count, piece.chunk, kept: kept)
  }

  private func end(of error: TransportError) throws(DownloadError) -> FetchEnd {
    let failure = DownloadError(error)
    guard failure.isTransient else { throw failure }
    return .again(failure, after: nil)
  }
}

/// The pauses of one connection after failures in a row: those since the file last grew.
struct Patience {
  private let policy: RetryPolicy
  private var failures = 0
  private var highest: Int64 = 0

  init(_ policy: RetryPolicy) { self.policy = policy }

  /// Returns the pause after one more failure; `nil` to give up.
  ///
  /// - Parameters:
  ///   - bytes: the most local bytes of the file so far.
  ///   - retryAfter: the server's requested pause.
  ///   - random: a uniformly random word.
  mutating func delay(_ bytes: Int64, retryAfter: Duration?, random: UInt64) -> Duration? {
    if bytes > highest { failures = 0 }
    highest = max(highest, bytes)
    failures += 1
    return policy.delay(afterFailures: failures, retryAfter: retryAfter, random: random)
  }
}
