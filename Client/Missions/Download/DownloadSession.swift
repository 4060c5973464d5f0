import FerryNetworking
import FerryProtocol

/// The download of one file: fetched parts, current requests, and reported progress.
///
/// It passes events to the plan and the decision, and executes their results. After an `await` in
/// this actor, everything may have changed.
actor DownloadSession {
  nonisolated let job: DownloadJob
  /// Bytes of the file: the job's, or the announced ones.
  nonisolated let size: Int64
  nonisolated let file: PartialFile
  nonisolated let layout: PartialLayout
  nonisolated let surroundings: DownloadSurroundings
  private let tell: @Sendable (DownloadProgress) -> Void

  var plan: ChunkPlan
  var map: ChunkMap
  /// The error that failed the download.
  private(set) var failure: DownloadError?
  /// The bytes received over the network.
  private(set) var fetched: Int64 = 0
  /// Fewer bytes than these between two failures do not count as progress.
  private static let littleBytes: Int64 = 4_096
  /// The bytes received at the last temporary failure of a request.
  private var fetchedAtFailure: Int64 = -1
  /// The bytes here already, in the partial file or in other files.
  var reused: Int64 = 0
  /// The most local bytes so far.
  private(set) var highest: Int64 = 0
  /// The facts about the whole file, after the only chunk was fetched or read completely.
  var facts: ContentFacts?

  private var gauge: ProgressGauge
  private var rule: RecordRule
  private var startOvers = 0
  private var isDue = false
  /// Tasks waiting for any change.
  private var waiters: [CheckedContinuation<Void, Never>] = []

  init(
    _ job: DownloadJob, size: Int64, file: PartialFile, layout: PartialLayout,
    settings: DownloadSettings, surroundings: DownloadSurroundings,
    tell: @escaping @Sendable (DownloadProgress) -> Void
  ) {
    self.job = job
    self.size = size
    self.file = file
    self.layout = layout
    self.surroundings = surroundings
    self.tell = tell
    var bounds = ChunkPlan.Bounds()
    bounds.connections = max(1, settings.connections)
    bounds.rangeBytes = settings.rangeBytes
    bounds.wholeBytes = settings.wholeBytes
    plan = ChunkPlan(size: size, chunkSize: layout.chunkSize, bounds: bounds)
    map =
      job.map.chunkCount == job.chunks.count ? job.map : ChunkMap(chunkCount: job.chunks.count)
    gauge = ProgressGauge(total: size)
    rule = RecordRule(bytes: 0, now: surroundings.steadyClock())
  }

  /// True if chunks have their own hashes; if not, the file is one chunk.
  nonisolated var checksChunks: Bool { !job.chunks.isEmpty }

  /// Returns the digest of a chunk before the first byte. If the chunk is the file, it also hashes
  /// the job's parts.
  nonisolated func digest() -> ContentDigest {
    ContentDigest(partSize: checksChunks ? nil : job.partSize)
  }

  /// Returns the expected hash of a chunk; `nil` if every content is accepted.
  nonisolated func hash(of chunk: Int) -> ContentHash? {
    checksChunks ? job.chunks[chunk] : job.hash
  }

  /// Returns true if a chunk has this hash, or any hash is accepted.
  nonisolated func accepts(_ digest: [UInt8]?, of chunk: Int) -> Bool {
    guard let digest else { return false }
    return hash(of: chunk).map { $0.bytes == digest } ?? true
  }

  // MARK: Work

  /// Returns the next request; waits while others may leave a part, `nil` when all are over.
  func next() async -> FetchRange? {
    while failure == nil, !plan.isComplete {
      if Task.isCancelled { fail(.cancelled) }
      if failure == nil, let range = plan.next() { return range }
      if failure == nil { await change() }
    }
    return nil
  }

  /// Ends a request, and returns the next one of the same connection. The next one may fetch the
  /// open chunks.
  ///
  /// Connections waiting for a request get it later: they have not counted this one's failures.
  func next(after range: FetchRange) async throws(DownloadError) -> FetchRange? {
    if !checksChunks, map.validator == nil, plan.kept(of: 0) > 0 { try await forgetPrefix() }
    plan.ended(range)
    // The awakened tasks run after this one; it continues without a pause.
    wake()
    return await next()
  }

  /// Records a temporary failure of a request before a retry. Reports the failure if no byte has
  /// arrived since the one before.
  func failed(_ error: DownloadError) async {
    // A server that sends a byte only now and then counts as silent.
    let isStill = fetchedAtFailure >= 0 && fetched - fetchedAtFailure < Self.littleBytes
    fetchedAtFailure = fetched
    if isStill { await job.stalled(error) }
  }

  /// Fails the download; the first failure counts.
  func fail(_ error: DownloadError) {
    if failure == nil { failure = error }
    wake()
  }

  /// Waits until more than `position` bytes from the start are here; `nil` if no more will come.
  func front(beyond position: Int64) async -> Int64? {
    while plan.frontBytes <= position {
      if failure != nil || plan.isComplete { return nil }
      await change()
    }
    return failure == nil ? plan.frontBytes : nil
  }

  /// Waits until the map should be recorded; returns `false` at the end of the download.
  func waitForRecord() async -> Bool {
    while failure == nil, !plan.isComplete {
      if isDue {
        isDue = false
        return true
      }
      await change()
    }
    return false
  }

  private func change() async { await withCheckedContinuation { waiters.append($0) } }

  private func wake() {
    let waiting = waiters
    waiters = []
    for waiter in waiting { waiter.resume() }
  }

  // MARK: Answers

  /// Returns the content of a range's request.
  func ask(_ range: FetchRange) -> TransferAsk {
    let isInside = !checksChunks && range.bytes.lowerBound > 0
    return TransferAsk(
      bytes: range.bytes, size: size, hasRange: range.hasRange,
      validator: isInside ? map.validator.map(TransferValidator.init(kept:)) : nil,
      checksChunks: checksChunks, isDecoded: plan.way == .decoded, isSizeKnown: job.size != nil,
      isProven: checksChunks || job.hash != nil)
  }

  /// Decides about an answer: the place of the body's bytes in the file, or the request's end.
  ///
  /// `range` becomes the whole file if the answer is the whole file and no other request is under
  /// way.
  func judge(
    _ head: AnswerHead, to ask: TransferAsk, _ range: inout FetchRange
  ) async throws(DownloadError) -> Verdict {
    switch ResumeDecision(head, to: ask, now: surroundings.wallClock()) {
    case .take(let bytes):
      if range.hasRange { plan.rangesWork() }
      wake()
      try await begin(head, at: bytes.lowerBound)
      return .take(bytes)
    case .takeWhole:
      guard let whole = plan.widen(range) else { return .end(.done) }
      range = whole
      try await begin(head, at: 0)
      return .take(0..<size)
    case .startOver(let error):
      startOvers += 1
      if startOvers > plan.bounds.tries { throw error }
      try await forgetPrefix()
      return .end(.done)
    case .change(let way, _):
      plan.change(to: way)
      return .end(.done)
    case .tryAgain(let error, let wish):
      return .end(.again(error, after: wish))
    case .giveUp(let error):
      throw error
    }
  }

  /// Records the version of an answer, before any of its bytes replaces another version's.
  private func begin(_ head: AnswerHead, at start: Int64) async throws(DownloadError) {
    guard !checksChunks, start == 0 else { return }
    try await forgetPrefix()
    map.validator = TransferValidator(head.headers)?.text
    if job.size == nil { map.announcedBytes = size }
    if layout.hasMarks { try await record() }
  }

  /// Removes the fetched part of a file without chunks.
  func forgetPrefix() async throws(DownloadError) {
    plan.recordBytes(0, of: 0)
    let wasThere = map.prefixBytes > 0 || map.validator != nil
    map.clear()
    try await file.mark(0, 0)
    if wasThere { try await record() }
  }

  // MARK: Content

  /// Returns true if the bytes of a request's answer are to be written to this chunk.
  func wants(_ chunk: Int, by range: FetchRange) -> Bool { plan.isWanted(chunk, by: range) }

  /// Records received bytes; `kept` bytes from the chunk's start are in the file now, 0 for skipped
  /// bytes.
  func received(_ count: Int, _ chunk: Int, kept: Int64) {
    fetched += Int64(count)
    if kept > 0 { plan.recordBytes(kept, of: chunk) }
    moved()
  }

  /// Checks a complete chunk: it is verified, or must be fetched again.
  ///
  /// Throws kind `wrongContent` if it was wrong too often.
  func checked(
    _ chunk: Int, _ found: ContentFacts, isWhole: Bool
  ) async throws(DownloadError) {
    if !checksChunks { facts = found }
    if accepts(found.hash.bytes, of: chunk) { return verified(chunk) }
    let mayTry = plan.failed(chunk, isWhole: isWhole)
    if !checksChunks { try await forgetPrefix() }
    guard mayTry else {
      let what = checksChunks ? "the SHA-256 of chunk \(chunk)" : "the file's SHA-256"
      throw DownloadError(
        .wrongContent(chunk: checksChunks ? chunk : nil),
        "\(what) differs from the \(checksChunks ? "manifest" : "expected one")")
    }
    wake()
  }

  /// Records a verified chunk.
  func verified(_ chunk: Int) {
    plan.verified(chunk)
    if checksChunks { map[chunk] = true }
    moved()
    wake()
  }

  /// Reports progress, and makes the map be recorded when it is due.
  func moved() {
    let bytes = plan.bytesVerified + plan.bytesKept
    highest = max(highest, bytes)
    if let progress = gauge.move(to: bytes, fetched: fetched) { tell(progress) }
    let lasting = checksChunks ? plan.bytesVerified : bytes
    if layout.hasMarks, rule.isDue(bytes: lasting, now: surroundings.steadyClock()) {
      isDue = true
      wake()
    }
  }

  /// Reports the bytes received since the last report.
  func reportEnd() {
    if let progress = gauge.end(fetched: fetched) { tell(progress) }
  }

  /// Records the map. For a file without chunks it has only the bytes on the disk, because no hash
  /// proves them before the end.
  func record() async throws(DownloadError) {
    if !checksChunks {
      let (kept, validator) = (plan.kept(of: 0), map.validator)
      if kept > 0 { try await file.synchronise() }
      if map.validator == validator, plan.kept(of: 0) >= kept {
        map.prefixBytes = layout.lasting(kept, of: 0)
      }
    }
    do {
      try await job.record(map)
    } catch {
      throw DownloadError(.file, "the progress cannot be recorded: \(error)")
    }
  }
}

/// The decision about an answer.
enum Verdict {
  case take(Range<Int64>)
  case end(FetchEnd)
}

/// The end of a request without a failure of the download.
enum FetchEnd: Sendable {
  /// The request ended as expected.
  case done
  /// The request is to be repeated, at the earliest after the server's requested pause.
  case again(DownloadError, after: Duration?)
}

extension DownloadError {
  static let cancelled = DownloadError(.cancelled, "the download was cancelled")

  /// Creates a download's error from a transport's.
  init(_ error: TransportError) {
    switch error.kind {
    case .offline, .timedOut, .interrupted: self.init(.offline, error.message)
    case .secureConnectionFailed: self.init(.offline, error.message, isTransient: false)
    case .cancelled: self.init(.cancelled, error.message)
    case .fileFailed: self.init(.file, error.message)
    case .badAddress, .redirectRefused, .responseTooLarge, .other:
      self.init(.wrongAnswer, error.message)
    }
  }
}
