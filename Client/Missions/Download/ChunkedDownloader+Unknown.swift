import FerryNetworking
import FerryProtocol
import Synchronization

// Files of unknown size or hash.
//
// The first answer announces the size. From there on the file is fetched like any other, and the
// first answer belongs to its first request. An answer without a length is written as it comes; it
// cannot be continued, only repeated.
extension ChunkedDownloader {
  /// The most versions of a file on the server in one call.
  private static let versionsMax = 3

  /// Fetches a file of unknown size or hash, or the answer to a request.
  func downloadUnknown(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    var job = job
    let counter = FetchCounter(progress)
    var failure = DownloadError(.changed, "the file keeps changing on the server")
    for _ in 0..<Self.versionsMax {
      do throws(DownloadError) {
        var outcome = try await attempt(job, counter)
        outcome.bytesFetched += counter.before
        return outcome
      } catch {
        guard error.kind == .changed else { throw error }
        failure = error
      }
      job.map.clear()
      do { try await job.record(job.map) } catch {
        throw DownloadError(.file, "the progress cannot be recorded: \(error)")
      }
    }
    throw failure
  }

  /// Fetches one version of the file.
  private func attempt(
    _ job: DownloadJob, _ counter: FetchCounter
  ) async throws(DownloadError) -> DownloadOutcome {
    let known = job.size ?? job.map.announcedBytes
    if job.source.isFile, let known, job.map.validator != nil {
      try check(known, job)
      return try await download(job, size: known, open: open, progress: counter.begin())
    }
    var patience = Patience(settings.retry)
    while true {
      do throws(Interruption) {
        return try await fetchFirst(job, progress: counter.begin())
      } catch {
        switch error {
        case .end(let error): throw Task.isCancelled ? .cancelled : error
        case .again(let error, let wish):
          await job.stalled(error)
          let random = surroundings.random()
          guard let delay = patience.delay(0, retryAfter: wish, random: random) else { throw error }
          do { try await surroundings.sleep(delay) } catch { throw .cancelled }
        }
      }
    }
  }

  /// Sends the first request, and fetches the file from that answer on.
  private func fetchFirst(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(Interruption) -> DownloadOutcome {
    let answer = try await firstAnswer(job)
    let head = AnswerHead(status: answer.status, headers: answer.headers)
    if head.hasWrongLength {
      answer.body.cancel()
      throw .end(.wrongLength)
    }
    guard job.source.isFile, !head.isEncoded, let length = head.length else {
      return try await save(answer.body, job, progress)
    }
    do throws(DownloadError) {
      if let size = job.size, size != length {
        throw DownloadError(
          .wrongContent(chunk: nil), "the server's file has \(length) bytes instead of \(size)")
      }
      try check(length, job)
      let first = FirstAnswer(answer, open)
      defer { first.cancel() }
      return try await download(job, size: length, open: first.opening, progress: progress)
    } catch {
      throw .end(error)
    }
  }

  /// Returns the answer to a request of the whole file. If the server encodes it nevertheless, the
  /// transport decodes it.
  private func firstAnswer(_ job: DownloadJob) async throws(Interruption) -> TransportStream {
    var ask = TransferAsk(bytes: 0..<0, size: 0, hasRange: false, checksChunks: false)
    while true {
      let answer: TransportStream
      do throws(TransportError) { answer = try await open(job.source, ask.headers) } catch {
        throw Interruption(error)
      }
      let head = AnswerHead(status: answer.status, headers: answer.headers)
      if head.status == 200 || !job.source.isFile && (201...203).contains(head.status) {
        guard head.isEncoded, !ask.isDecoded else { return answer }
        answer.body.cancel()
        ask.isDecoded = true
        continue
      }
      answer.body.cancel()
      switch ResumeDecision(head, to: ask, now: surroundings.wallClock()) {
      case .tryAgain(let error, let wish): throw .again(error, after: wish)
      case .giveUp(let error): throw .end(error)
      case .take, .takeWhole, .startOver, .change:
        throw .end(DownloadError(.wrongAnswer, "the server answered with status \(head.status)"))
      }
    }
  }

  /// Throws for a size that no file may have, before a place in the partial file is computed from
  /// it.
  func check(_ size: Int64, _ job: DownloadJob) throws(DownloadError) {
    let limit = Self.bytesMax(of: job)
    guard size > limit else { return }
    throw DownloadError(.wrongAnswer, "the file has \(size) bytes, and \(limit) are allowed")
  }

  /// Returns the most bytes of a job's file, whatever the server or the job's maker claims.
  private static func bytesMax(of job: DownloadJob) -> Int64 {
    min(job.size ?? job.sizeMax, MissionLimits.standard.itemBytes)
  }

  // MARK: Without a length

  /// Writes a body of unknown length.
  private func save(
    _ body: TransportBody, _ job: DownloadJob,
    _ progress: @Sendable (DownloadProgress) -> Void
  ) async throws(Interruption) -> DownloadOutcome {
    let limit = Self.bytesMax(of: job)
    var gauge = StreamGauge()
    var hash = ContentDigest(partSize: job.partSize)
    var size: Int64 = 0
    let file = partialFile(job)
    do throws(DownloadError) {
      _ = try await file.open(bootID: nil)
      try await job.reserve(0)
      var parts = body.makeAsyncIterator()
      while true {
        let part: [UInt8]?
        do throws(TransportError) { part = try await parts.next() } catch {
          throw DownloadError(error)
        }
        guard let part else { break }
        guard Int64(part.count) <= limit - size else {
          throw DownloadError(.wrongAnswer, "the file has more than \(limit) bytes")
        }
        try await file.write(part, at: size)
        hash.update(part)
        size += Int64(part.count)
        if gauge.isDue(size) {
          try await job.reserve(0)
          progress(DownloadProgress(bytesDone: size, bytesTotal: job.size, bytesFetched: size))
        }
      }
    } catch {
      progress(DownloadProgress(bytesDone: size, bytesTotal: job.size, bytesFetched: size))
      throw error.isTransient ? .again(error, after: nil) : .end(error)
    }
    do throws(DownloadError) {
      return try await finish(job, file, hash.finish(), progress)
    } catch {
      throw .end(error)
    }
  }

  /// Checks a completely written body.
  private func finish(
    _ job: DownloadJob, _ file: PartialFile, _ facts: ContentFacts,
    _ progress: @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    let size = facts.size
    if let expected = job.size, expected != size {
      throw DownloadError(
        .wrongContent(chunk: nil), "the server's file has \(size) bytes instead of \(expected)")
    }
    if let expected = job.hash, expected != facts.hash {
      throw DownloadError(
        .wrongContent(chunk: nil), "the file's SHA-256 differs from the expected one")
    }
    try await file.finish(size: size, isDurable: settings.endsDurable)
    progress(DownloadProgress(bytesDone: size, bytesTotal: size, bytesFetched: size))
    return DownloadOutcome(
      bytesFetched: size, bytesReused: 0, size: size, hash: facts.hash, parts: facts.parts)
  }

  /// Returns the job's file, without marks and of unknown size.
  private func partialFile(_ job: DownloadJob) -> PartialFile {
    let layout = PartialLayout(
      size: 0, chunkSize: 1, chunkCount: 0, marksFrom: .max, isSealed: job.seal != nil)
    return PartialFile(
      path: job.partialPath, layout: layout, seal: job.seal, isSizeKnown: false,
      executor: writing, system: surroundings.files)
  }
}

/// The end of an attempt without a file.
private enum Interruption: Error {
  /// Another attempt may succeed, at the earliest after the server's requested pause.
  case again(DownloadError, after: Duration?)
  case end(DownloadError)

  init(_ error: TransportError) {
    let failure = DownloadError(error)
    self = failure.isTransient ? .again(failure, after: nil) : .end(failure)
  }
}

/// The answer with the announced size of a file; it serves as the answer to the file's first
/// request.
private final class FirstAnswer: Sendable {
  private let answer: Mutex<TransportStream?>
  private let open: DownloadOpening

  init(_ answer: TransportStream, _ open: @escaping DownloadOpening) {
    self.answer = Mutex(answer)
    self.open = open
  }

  /// Opens transfers: the first one without a range gets the answer.
  var opening: DownloadOpening {
    { (source, fields) async throws(TransportError) -> TransportStream in
      let first = self.answer.withLock { $0.take() }
      if let first, fields["Range"] == nil { return first }
      first?.body.cancel()
      return try await self.open(source, fields)
    }
  }

  /// Ends an unused answer.
  func cancel() { answer.withLock { $0.take() }?.body.cancel() }
}

/// Adds the received bytes of earlier transfers to the reported progress.
private final class FetchCounter: Sendable {
  private let counts = Mutex<(before: Int64, present: Int64)>((0, 0))
  private let progress: @Sendable (DownloadProgress) -> Void

  init(_ progress: @escaping @Sendable (DownloadProgress) -> Void) { self.progress = progress }

  /// The bytes received before the present transfer.
  var before: Int64 { counts.withLock { $0.before } }

  /// Begins a transfer. Returns the receiver of the progress; it counts from zero.
  func begin() -> @Sendable (DownloadProgress) -> Void {
    counts.withLock { $0 = ($0.before + $0.present, 0) }
    return { self.update($0) }
  }

  private func update(_ progress: DownloadProgress) {
    var progress = progress
    progress.bytesFetched += counts.withLock { counts in
      counts.present = max(counts.present, progress.bytesFetched)
      return counts.before
    }
    self.progress(progress)
  }
}

/// Decides when the progress of a body of unknown length is reported.
private struct StreamGauge {
  private static let step: Int64 = 64 << 10
  private var reported: Int64 = 0

  mutating func isDue(_ size: Int64) -> Bool {
    guard size - reported >= Self.step else { return false }
    reported = size
    return true
  }
}
